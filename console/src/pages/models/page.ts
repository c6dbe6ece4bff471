import type { Page } from "../../pages.ts";

/** What can be used, what it can do and what it costs. */
export const page: Page = {
  path: "models",
  title: "Models",
  group: "Manage",
  order: 5,
  load: async () => (await import("./models-page.tsx")).ModelsPage,
};
