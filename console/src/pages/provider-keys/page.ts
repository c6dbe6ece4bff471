import type { Page } from "../../pages.ts";

/** The account's own keys at providers. */
export const page: Page = {
  path: "provider-keys",
  title: "Provider keys",
  group: "Manage",
  order: 3,
  load: async () => (await import("./provider-keys-page.tsx")).ProviderKeysPage,
};
