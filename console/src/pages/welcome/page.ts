import type { Page } from "../../pages.ts";

/** What greets whoever comes first. */
export const page: Page = {
  path: "",
  title: "Welcome",
  group: "Make",
  order: 1,
  load: async () => (await import("./welcome-page.tsx")).WelcomePage,
};
