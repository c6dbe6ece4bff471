import type { ComponentType } from "react";

/** Where the side navigation lists a page. */
export type NavGroup = "Make" | "Watch" | "Manage";

/** A page of the console, as `pages/<name>/page.ts` exports it under the name `page`. */
export interface Page {
  /** What stands behind `#/`; empty for the first page. */
  readonly path: string;
  readonly title: string;
  readonly group: NavGroup;
  /** Its place in its group, ascending. */
  readonly order: number;
  /** Loads its code, which no other page needs to wait for. */
  readonly load: () => Promise<ComponentType>;
}

/** The groups in the order of the navigation. */
export const navGroups: readonly NavGroup[] = ["Make", "Watch", "Manage"];

const modules = import.meta.glob<{ page: Page }>("./pages/*/page.ts", { eager: true });

/** Every page there is: whoever adds a folder adds a page. */
export const pages: readonly Page[] = Object.values(modules)
  .map(({ page }) => page)
  .sort(
    (one, other) => navGroups.indexOf(one.group) - navGroups.indexOf(other.group) || one.order - other.order,
  );
