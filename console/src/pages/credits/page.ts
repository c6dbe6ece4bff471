import type { Page } from "../../pages.ts";

/** What the account has, and what moved it. */
export const page: Page = {
  path: "credits",
  title: "Credits",
  group: "Manage",
  order: 2,
  load: async () => (await import("./credits-page.tsx")).CreditsPage,
};
