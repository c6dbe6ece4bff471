import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import {
  type LedgerEntry,
  LedgerEntrySchema,
  LedgerEntryType,
} from "../../gen/media/account/v1/credit_pb.ts";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { type Key, KeyKind, KeySchema, KeyScope, LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { type ProviderKey, ProviderKeySchema } from "../../gen/media/account/v1/provider_key_pb.ts";
import { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { serverInterceptor } from "../../lib/rpc/interceptors.ts";
import { silentLog } from "../../lib/runtime/log.ts";

/** Handlers that play what the account service offers to the gateway. */
export interface AccountHandlers {
  readonly keys?: Partial<ServiceImpl<typeof KeyService>>;
  readonly credits?: Partial<ServiceImpl<typeof CreditService>>;
  readonly providerKeys?: Partial<ServiceImpl<typeof ProviderKeyService>>;
  readonly internal?: Partial<ServiceImpl<typeof AccountInternalService>>;
}

/** Registers the account service's RPCs that the gateway calls with the given handlers. */
export function accountRoutes({
  keys = {},
  credits = {},
  providerKeys = {},
  internal = {},
}: AccountHandlers = {}) {
  return (router: ConnectRouter) => {
    const options = { interceptors: [serverInterceptor(silentLog)] };
    router.service(KeyService, keys, options);
    router.service(CreditService, credits, options);
    router.service(ProviderKeyService, providerKeys, options);
    router.service(AccountInternalService, internal, options);
  };
}

/** What a test changes about a message; undefined: the field is unset. */
export type MessageChanges<M> = { readonly [F in keyof M]?: M[F] | undefined };

/** When the records of these fixtures were made, Unix milliseconds. */
export const recordCreatedMs = Date.UTC(2030, 0, 31, 12);

/** A charge, as the account service tells it. */
export function ledgerEntry(changes: MessageChanges<LedgerEntry> = {}): LedgerEntry {
  const entry = create(LedgerEntrySchema, {
    createdAt: timestampFromMs(recordCreatedMs),
    type: LedgerEntryType.CHARGE,
    amountNanoUsd: 15_000n,
    generationId: "gen-tts-1",
  });
  return Object.assign(entry, changes);
}

/** A limited inference key, as the account service tells it. */
export function accountKey(changes: MessageChanges<Key> = {}): Key {
  const key = create(KeySchema, {
    hash: "cd".repeat(32),
    accountId: "account-1",
    memberId: "member-1",
    kind: KeyKind.INFERENCE,
    scopes: [KeyScope.SPEECH, KeyScope.IMAGES],
    name: "Website",
    label: "sk-abc…wxyz",
    disabled: true,
    createdAt: timestampFromMs(recordCreatedMs),
    updatedAt: timestampFromMs(recordCreatedMs + 1),
    lastUsedAt: timestampFromMs(recordCreatedMs + 3),
    expiresAt: timestampFromMs(recordCreatedMs + 2),
    limitNanoUsd: 5_000_000_001n,
    limitRemainingNanoUsd: 4_999_999_999n,
    limitReset: LimitReset.WEEKLY,
    includeByokInLimit: true,
    usage: { totalNanoUsd: 4n, dailyNanoUsd: 1n, weeklyNanoUsd: 2n, monthlyNanoUsd: 3n },
    byokUsage: {
      totalNanoUsd: 4_000_000_000n,
      dailyNanoUsd: 1_500_000_000n,
      weeklyNanoUsd: 2_500_000_000n,
      monthlyNanoUsd: 3_500_000_000n,
    },
    rateLimitPerMinute: 60,
  });
  return Object.assign(key, changes);
}

/** A provider key, as the account service tells it. */
export function providerKey(changes: MessageChanges<ProviderKey> = {}): ProviderKey {
  const key = create(ProviderKeySchema, {
    id: "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10",
    accountId: "account-1",
    providerSlug: "acme",
    name: "Team",
    label: "sk-…wxyz",
    createdAt: timestampFromMs(recordCreatedMs),
  });
  return Object.assign(key, changes);
}
