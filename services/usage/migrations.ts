import type { SchemaMigrations } from "../../lib/database/migrate.ts";
import { usage } from "./migrations/0001-usage.ts";
import { cachedTokens } from "./migrations/0002-cached-tokens.ts";
import { listing } from "./migrations/0003-listing.ts";
import { activityHours } from "./migrations/0004-activity-hours.ts";

/** The schema of the usage service and the steps that make it. */
export const usageMigrations: SchemaMigrations = {
  schema: "usage",
  migrations: {
    "0001-usage": usage,
    "0002-cached-tokens": cachedTokens,
    "0003-listing": listing,
    "0004-activity-hours": activityHours,
  },
};
