import type { Page } from "../../pages.ts";

/** Where the account's usage events are delivered. */
export const page: Page = {
  path: "destinations",
  title: "Destinations",
  group: "Manage",
  order: 4,
  load: async () => (await import("./destinations-page.tsx")).DestinationsPage,
};
