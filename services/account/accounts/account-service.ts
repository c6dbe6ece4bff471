import { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../../gen/media/account/v1/provider_key_service_pb.ts";
import { translateDatabaseErrors } from "../../../lib/database/database-errors.ts";
import { schemaProblems } from "../../../lib/database/migrate.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { watchConsumer } from "../../../lib/events/event-metrics.ts";
import { groups } from "../../../lib/events/topics.ts";
import { createKeyAuthenticator } from "../../../lib/identity/authenticate.ts";
import { maxKeyRatePerMinute } from "../../../lib/limits/key-limits.ts";
import { systemClock } from "../../../lib/runtime/clock.ts";
import { silentTracer } from "../../../lib/runtime/span.ts";
import { callInterceptors, type ServiceCallOptions } from "../../../lib/service/call-interceptors.ts";
import type { Service } from "../../../lib/service/run-service.ts";
import { createInternalHandlers } from "../internal-rpc.ts";
import { findPrincipal } from "../keys/key-use.ts";
import { accountMigrations } from "../migrations.ts";
import { createCreditHandlers } from "../money/credit-rpc.ts";
import { type MoneyBackground, startMoneyBackground } from "../money/money-background.ts";
import { watchMoney } from "../money/money-metrics.ts";
import { createMoneyCounters, readMoneyTotals } from "../money/money-totals.ts";
import {
  createProviderKeyHandlers,
  createResolveHandlers,
  type ProviderKeyOptions,
} from "../provider-keys/provider-key-rpc.ts";
import { createKeyHandlers } from "../rpc.ts";
import type { AccountDatabase } from "../store.ts";
import { listAccounts } from "./accounts.ts";
import { createAdminHandlers } from "./admin-rpc.ts";
import { createConsoleLink } from "./console-links.ts";
import { Founding } from "./founding.ts";

/** How long the account service waits before it acts, how long it remembers, and what keys may be given. */
export interface AccountLimits {
  /** The most requests a minute that a key may be given; 1,000,000 unless given. */
  readonly maxRateLimitPerMinute?: number;
  /** How long after its deadline an open hold is published as lost, milliseconds. */
  readonly holdGraceMs: number;
  /** How long the event of a settled hold may stay unmet on the topic before it is published, milliseconds. */
  readonly unseenGraceMs: number;
  /** How long usage records are kept. */
  readonly retentionDays: number;
}

interface AccountServiceOptions extends Omit<ServiceCallOptions, "authenticateKey"> {
  database: AccountDatabase;
  /** What requests' events travel on; it may be away. */
  bus: Bus;
  limits: AccountLimits;
  providerKeys: ProviderKeyOptions;
  /**
   * Resolves when the first account is there, if it is to be made: until then the service is not ready, and a key that it
   * does not know is waited for. It is there unless given.
   */
  founded?: Promise<void> | undefined;
}

/** The account service, to be put on a port or called in this process. */
export type AccountService = ReturnType<typeof createAccountService>;

/** The account service on a database. */
export function createAccountService(options: AccountServiceOptions) {
  const { database, log, limits, providerKeys, clock = systemClock } = options;
  const { tracer = silentTracer } = options;
  const { maxRateLimitPerMinute = maxKeyRatePerMinute } = limits;
  const counters = createMoneyCounters();
  const money = { database, counters, log, clock, ...limits };
  let background: MoneyBackground | undefined;
  const moneyTotals = () => readMoneyTotals(database, counters);
  if (options.metrics !== undefined) {
    watchConsumer(options.metrics, groups.account, () => background?.consumer);
    watchMoney(options.metrics, { moneyCounters: counters, moneyTotals }, log);
  }
  const founding = new Founding(options.founded);
  const lookUpKey = (keyHash: string, signal: AbortSignal) =>
    founding.whenFounded(() => findPrincipal(database, keyHash, log), signal);
  const authenticateKey = createKeyAuthenticator({ lookUp: lookUpKey, clock });
  const translate = [translateDatabaseErrors];
  const called = { ...options, authenticateKey, audience: "account", clock, translate } as const;
  const interceptors = callInterceptors(called);
  return {
    services: [KeyService, CreditService, ProviderKeyService, AccountInternalService, AccountAdminService],
    routes(router) {
      const internal = {
        ...createInternalHandlers({ ...money, lookUpKey }),
        ...createResolveHandlers(database, providerKeys),
      };
      const admin = createAdminHandlers({ database, providerKeys, maxRateLimitPerMinute, clock });
      router.service(KeyService, createKeyHandlers(database, maxRateLimitPerMinute, clock), { interceptors });
      router.service(CreditService, createCreditHandlers(database), { interceptors });
      router.service(ProviderKeyService, createProviderKeyHandlers(database, providerKeys), { interceptors });
      router.service(AccountInternalService, internal, { interceptors });
      router.service(AccountAdminService, admin, { interceptors });
    },
    readiness: () => problemsOf(database, founding),
    /** Who a key speaks for, straight from the database, for an authenticator in this process. */
    lookUpKey,
    authenticateKey,
    moneyTotals,
    /** A code by which the console signs in to the only account; undefined where there are several or none. */
    makeConsoleCode: (operator: string) => codeForOnlyAccount(database, operator),
    get consumer() {
      return background?.consumer;
    },
    start() {
      background ??= startMoneyBackground({ ...money, bus: options.bus, tracer });
    },
    stop: async () => background?.stop(),
  } satisfies Service & Record<string, unknown>;
}

async function codeForOnlyAccount(database: AccountDatabase, operator: string): Promise<string | undefined> {
  const [only, second] = await listAccounts(database, undefined, 2);
  if (only === undefined || second !== undefined) return undefined;
  return (await createConsoleLink(database, only.id, operator)).code;
}

async function problemsOf(database: AccountDatabase, founding: Founding): Promise<readonly string[]> {
  const problems = await schemaProblems(database, accountMigrations);
  if (problems.length > 0) return problems;
  return founding.isOver ? [] : ["the first account is being made"];
}
