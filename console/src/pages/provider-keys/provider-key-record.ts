import type { components } from "../../../gen/openapi.ts";

/** A provider key as the interface lists it. */
export type ProviderKeyRecord = Pick<
  components["schemas"]["ProviderKeyList"]["data"][number],
  "id" | "provider" | "label" | "name" | "disabled" | "created_at"
>;
