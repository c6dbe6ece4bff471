import type { Page } from "../../pages.ts";

/** Where speech and images are tried with all that can be set. */
export const page: Page = {
  path: "playground",
  title: "Playground",
  group: "Make",
  order: 2,
  load: async () => (await import("./playground-page.tsx")).PlaygroundPage,
};
