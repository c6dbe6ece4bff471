import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ResolveProviderKeyResponseSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import {
  CreateProviderKeyResponseSchema,
  ListProviderKeysResponseSchema,
  type ProviderKey,
  ProviderKeySchema,
} from "../../gen/media/account/v1/provider_key_pb.ts";
import type { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import type { Sealer } from "../../lib/secrets/seal.ts";
import { FieldIssues } from "./field-issues.ts";
import { createProviderKey, deleteProviderKey, listProviderKeys, openProviderKey } from "./provider-keys.ts";
import type { AccountDatabase, ProviderKeyRow } from "./store.ts";

/** What provider keys are kept with. */
export interface ProviderKeyOptions {
  readonly sealer: Sealer;
  /** The providers that an account may store a key for. */
  readonly providerSlugs: readonly string[];
}

/** Whatever can stand in a header as a whole. */
const secretPattern = /^[\x21-\x7e]+$/;
const maxSecretLength = 4096;

/** The handlers of ProviderKeyService; each answers for the account of the calling key alone. */
export function createProviderKeyHandlers(
  database: AccountDatabase,
  options: ProviderKeyOptions,
): Partial<ServiceImpl<typeof ProviderKeyService>> {
  return {
    async listProviderKeys(_request, context) {
      const rows = await listProviderKeys(database, principalOf(context).accountId);
      return create(ListProviderKeysResponseSchema, { providerKeys: rows.map(toProtoProviderKey) });
    },
    async createProviderKey({ providerSlug, secret, name }, context) {
      const { sealer, providerSlugs } = options;
      const { accountId } = principalOf(context);
      const issues = new FieldIssues();
      if (!providerSlugs.includes(providerSlug))
        issues.add("provider_slug", "is no provider that takes keys");
      checkSecret(issues, secret);
      if (name !== "") issues.checkName("name", name);
      issues.throwIfAny();
      const row = await createProviderKey(database, sealer, { accountId, providerSlug, secret, name });
      return create(CreateProviderKeyResponseSchema, { providerKey: toProtoProviderKey(row) });
    },
    async deleteProviderKey({ id }, context) {
      const issues = new FieldIssues();
      issues.checkUuid("id", id);
      issues.throwIfAny();
      await deleteProviderKey(database, principalOf(context).accountId, id);
      return {};
    },
  };
}

function checkSecret(issues: FieldIssues, secret: string): void {
  if (secret === "") issues.add("secret", "must not be empty");
  else if (secret.length > maxSecretLength)
    issues.add("secret", `must not be longer than ${maxSecretLength} characters`);
  else if (!secretPattern.test(secret))
    issues.add("secret", "must be visible ASCII characters without blanks");
}

function toProtoProviderKey(row: ProviderKeyRow): ProviderKey {
  return create(ProviderKeySchema, {
    id: row.id,
    providerSlug: row.provider_slug,
    name: row.name,
    label: row.label,
    disabled: row.disabled,
    createdAt: timestampFromDate(row.created_at),
  });
}

/** The handler by which the processes that call providers get an account's own key; they keep it for at most 5 s. */
export function createResolveHandlers(
  database: AccountDatabase,
  options: ProviderKeyOptions,
): Pick<ServiceImpl<typeof AccountInternalService>, "resolveProviderKey"> {
  return {
    async resolveProviderKey({ accountId, providerSlug }) {
      const issues = new FieldIssues();
      issues.checkUuid("account_id", accountId);
      issues.throwIfAny();
      const found = await openProviderKey(database, options.sealer, { accountId, providerSlug });
      return create(ResolveProviderKeyResponseSchema, found ?? {});
    },
  };
}
