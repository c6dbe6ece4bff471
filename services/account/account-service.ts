import type { DescService } from "@bufbuild/protobuf";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { pendingMigrations } from "../../lib/database/migrate.ts";
import {
  createKeyAuthenticator,
  type KeyAuthenticator,
  type KeyLookUp,
} from "../../lib/identity/authenticate.ts";
import { createIdentityInterceptor } from "../../lib/identity/identity-interceptor.ts";
import type { TokenVerifier } from "../../lib/identity/service-token.ts";
import { type Clock, systemClock } from "../../lib/runtime/clock.ts";
import type { Readiness } from "../../lib/runtime/health.ts";
import { serverInterceptor } from "../../lib/runtime/interceptors.ts";
import type { Log } from "../../lib/runtime/log.ts";
import type { RegisterRoutes } from "../../lib/runtime/rpc-handler.ts";
import { createAdminHandlers } from "./admin-rpc.ts";
import { translateDatabaseErrors } from "./database-errors.ts";
import { createInternalHandlers, findPrincipal } from "./internal-rpc.ts";
import { accountMigrations } from "./migrations.ts";
import { createKeyHandlers } from "./rpc.ts";
import type { AccountDatabase } from "./store.ts";

/** What the account service works with. */
export interface AccountServiceOptions {
  database: AccountDatabase;
  log: Log;
  verifyToken: TokenVerifier;
  clock?: Clock;
}

/** The account service, to be put on a port or called in this process. */
export interface AccountService {
  readonly services: readonly DescService[];
  readonly routes: RegisterRoutes;
  /** Names a database that is away and migrations that have not run. */
  readonly readiness: Readiness;
  /** Who a key speaks for, straight from the database, for an authenticator in this process. */
  readonly lookUpKey: KeyLookUp;
  /** Who a key speaks for, remembered for at most 5 s. */
  readonly authenticateKey: KeyAuthenticator;
}

/** The account service on a database. */
export function createAccountService(options: AccountServiceOptions): AccountService {
  const { database, log, verifyToken, clock = systemClock } = options;
  const lookUpKey: KeyLookUp = (keyHash) => findPrincipal(database, keyHash);
  const authenticateKey = createKeyAuthenticator({ lookUp: lookUpKey, clock });
  const identity = createIdentityInterceptor({ audience: "account", authenticateKey, verifyToken, clock });
  const interceptors = [serverInterceptor(log), translateDatabaseErrors, identity];
  return {
    services: [KeyService, AccountInternalService, AccountAdminService],
    routes(router) {
      router.service(KeyService, createKeyHandlers(database, clock), { interceptors });
      router.service(AccountInternalService, createInternalHandlers(database), { interceptors });
      router.service(AccountAdminService, createAdminHandlers(database, clock), { interceptors });
    },
    async readiness() {
      const pending = await pendingMigrations(database, accountMigrations).catch(() => undefined);
      if (pending === undefined) return ["the database is away"];
      return pending.length === 0 ? [] : [`migrations pending: ${pending.join(", ")}`];
    },
    lookUpKey,
    authenticateKey,
  };
}
