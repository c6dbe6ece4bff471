import type { Page } from "../../pages.ts";

/** What the account's keys are and spend. */
export const page: Page = {
  path: "keys",
  title: "Keys",
  group: "Manage",
  order: 1,
  load: async () => (await import("./keys-page.tsx")).KeysPage,
};
