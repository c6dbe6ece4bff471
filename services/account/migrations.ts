import type { SchemaMigrations } from "../../lib/database/migrate.ts";
import { accounts } from "./migrations/0001-accounts.ts";
import { credits } from "./migrations/0002-credits.ts";
import { providerKeys } from "./migrations/0003-provider-keys.ts";
import { keyRotation } from "./migrations/0004-key-rotation.ts";
import { keyUse } from "./migrations/0005-key-use.ts";
import { consoleLinks } from "./migrations/0006-console-links.ts";
import { disabledAccounts } from "./migrations/0007-disabled-accounts.ts";

/** The schema of the account service and the steps that make it. */
export const accountMigrations: SchemaMigrations = {
  schema: "account",
  migrations: {
    "0001-accounts": accounts,
    "0002-credits": credits,
    "0003-provider-keys": providerKeys,
    "0004-key-rotation": keyRotation,
    "0005-key-use": keyUse,
    "0006-console-links": consoleLinks,
    "0007-disabled-accounts": disabledAccounts,
  },
};
