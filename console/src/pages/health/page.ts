import type { Page } from "../../pages.ts";

/** How providers and their endpoints have lately fared. */
export const page: Page = {
  path: "health",
  title: "Health",
  group: "Watch",
  order: 3,
  load: async () => (await import("./health-page.tsx")).HealthPage,
};
