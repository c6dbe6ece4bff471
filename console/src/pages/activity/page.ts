import type { Page } from "../../pages.ts";

/** What the account did over time, and what it cost. */
export const page: Page = {
  path: "activity",
  title: "Activity",
  group: "Watch",
  order: 2,
  load: async () => (await import("./activity-page.tsx")).ActivityPage,
};
