import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type AuditEntry, AuditEntrySchema } from "../../gen/media/account/v1/account_admin_pb.ts";
import { type Principal, PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import {
  type Account,
  AccountKind,
  AccountSchema,
  type Member,
  MemberSchema,
} from "../../gen/media/account/v1/account_pb.ts";
import {
  type Key,
  KeyKind,
  KeySchema,
  type KeyScope,
  type KeyUsage,
  KeyUsageSchema,
  LimitReset,
} from "../../gen/media/account/v1/key_pb.ts";
import { keyKinds, keyScopes, limitResets } from "../../lib/limits/key-limits.ts";
import { wordOf } from "../../lib/limits/words.ts";
import { type LineSpending, limitRemaining, type PeriodSums } from "./keys/key-spending.ts";
import type {
  AccountKindName,
  AccountRow,
  ApiKeyRow,
  AuditRow,
  KeyKindName,
  KeyScopeName,
  LimitResetName,
  MemberRow,
} from "./store.ts";

const accountKinds: Readonly<Record<AccountKindName, AccountKind>> = {
  personal: AccountKind.PERSONAL,
  organization: AccountKind.ORGANIZATION,
};

/** The stored word of an account kind; undefined when it is none. */
export function fromProtoAccountKind(kind: AccountKind): AccountKindName | undefined {
  return wordOf(accountKinds, kind);
}

/** The stored word of a key kind, unset being inference; undefined when it is none. */
export function fromProtoKeyKind(kind: KeyKind): KeyKindName | undefined {
  return kind === KeyKind.UNSPECIFIED ? "inference" : wordOf(keyKinds, kind);
}

/** The stored word of a scope; undefined when it is none. */
export function fromProtoKeyScope(scope: KeyScope): KeyScopeName | undefined {
  return wordOf(keyScopes, scope);
}

/** The stored word of a limit's period, null when it never starts anew; undefined when it is none. */
export function fromProtoLimitReset(reset: LimitReset): LimitResetName | null | undefined {
  return reset === LimitReset.UNSPECIFIED ? null : wordOf(limitResets, reset);
}

/** An account as it is shown. */
export function toProtoAccount(row: AccountRow): Account {
  const { id, name } = row;
  return create(AccountSchema, {
    id,
    name,
    kind: accountKinds[row.kind],
    createdAt: timestampFromDate(row.created_at),
    grantedNanoUsd: row.granted_nano_usd,
    chargedNanoUsd: row.charged_nano_usd,
    heldNanoUsd: row.held_nano_usd,
    balanceNanoUsd: row.balance_nano_usd,
    ...instant("disabledAt", row.disabled_at),
  });
}

/** A member as it is shown. */
export function toProtoMember(row: MemberRow): Member {
  return create(MemberSchema, {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    createdAt: timestampFromDate(row.created_at),
    ...instant("removedAt", row.removed_at),
  });
}

/** A key as it is shown, with what its line of rotations has spent. */
export function toProtoKey(row: ApiKeyRow, spending: LineSpending): Key {
  const limitRemainingNanoUsd = limitRemaining(row, spending);
  return create(KeySchema, {
    hash: row.hash,
    accountId: row.account_id,
    memberId: row.member_id ?? "",
    kind: keyKinds[row.kind],
    scopes: row.scopes.map((scope) => keyScopes[scope]),
    name: row.name,
    label: row.label,
    disabled: row.disabled,
    createdAt: timestampFromDate(row.created_at),
    ...instant("updatedAt", row.updated_at),
    ...instant("lastUsedAt", row.last_used_at),
    ...instant("expiresAt", row.expires_at),
    ...(row.limit_nano_usd === null ? {} : { limitNanoUsd: row.limit_nano_usd }),
    ...(limitRemainingNanoUsd === undefined ? {} : { limitRemainingNanoUsd }),
    limitReset: row.limit_reset === null ? LimitReset.UNSPECIFIED : limitResets[row.limit_reset],
    includeByokInLimit: row.include_byok_in_limit,
    usage: toProtoUsage(spending.spent),
    byokUsage: toProtoUsage(spending.byok),
    ...rateLimit(row),
  });
}

function toProtoUsage({ total, daily, weekly, monthly }: PeriodSums): KeyUsage {
  return create(KeyUsageSchema, {
    totalNanoUsd: total,
    dailyNanoUsd: daily,
    weeklyNanoUsd: weekly,
    monthlyNanoUsd: monthly,
  });
}

/** Who a key speaks for. */
export function toProtoPrincipal(row: ApiKeyRow & { account_kind: AccountKindName }): Principal {
  return create(PrincipalSchema, {
    accountId: row.account_id,
    memberId: row.member_id ?? "",
    keyHash: row.hash,
    keyName: row.name,
    keyKind: keyKinds[row.kind],
    scopes: row.scopes.map((scope) => keyScopes[scope]),
    rateBucket: row.rate_bucket,
    organization: row.account_kind === "organization",
    ...rateLimit(row),
    ...instant("expiresAt", row.expires_at),
  });
}

/** An audit entry as it is shown. */
export function toProtoAuditEntry(row: AuditRow): AuditEntry {
  const { id, operator, action, subject, note } = row;
  return create(AuditEntrySchema, {
    id,
    operator,
    action,
    subject,
    note,
    at: timestampFromDate(row.at),
    accountId: row.account_id ?? "",
  });
}

function rateLimit({ rate_limit_per_minute }: ApiKeyRow): { rateLimitPerMinute?: number } {
  return rate_limit_per_minute === null ? {} : { rateLimitPerMinute: rate_limit_per_minute };
}

function instant<N extends string>(name: N, date: Date | null): { [K in N]?: Timestamp } {
  return (date === null ? {} : { [name]: timestampFromDate(date) }) as { [K in N]?: Timestamp };
}
