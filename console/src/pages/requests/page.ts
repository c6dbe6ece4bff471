import type { Page } from "../../pages.ts";

/** Every generation, as it ends. */
export const page: Page = {
  path: "requests",
  title: "Requests",
  group: "Watch",
  order: 1,
  load: async () => (await import("./requests-page.tsx")).RequestsPage,
};
