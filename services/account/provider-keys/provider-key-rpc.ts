import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { type ProviderKey, ProviderKeySchema } from "../../../gen/media/account/v1/provider_key_pb.ts";
import type { ProviderKeyService } from "../../../gen/media/account/v1/provider_key_service_pb.ts";
import { principalOf } from "../../../lib/identity/caller.ts";
import { providerSecret } from "../../../lib/limits/key-limits.ts";
import type { Sealer } from "../../../lib/secrets/seal.ts";
import { checkUuids } from "../accounts/admin-requests.ts";
import { FieldIssues } from "../field-issues.ts";
import type { AccountDatabase, ProviderKeyRow } from "../store.ts";
import {
  createProviderKey,
  deleteProviderKey,
  getProviderKey,
  listProviderKeys,
  openProviderKey,
  updateProviderKey,
} from "./provider-keys.ts";

/** How accounts' own keys at providers are sealed, and which providers take them. */
export interface ProviderKeyOptions {
  readonly sealer: Sealer;
  /** The providers that an account may store a key for. */
  providerSlugs(): Promise<readonly string[]>;
}

const secretPattern = new RegExp(providerSecret.pattern);

/** The handlers of ProviderKeyService; each answers for the account of the calling key alone. */
export function createProviderKeyHandlers(
  database: AccountDatabase,
  options: ProviderKeyOptions,
): Partial<ServiceImpl<typeof ProviderKeyService>> {
  return {
    async listProviderKeys(_request, context) {
      const rows = await listProviderKeys(database, principalOf(context).accountId);
      return { providerKeys: rows.map(toProtoProviderKey) };
    },
    async createProviderKey({ providerSlug, secret, name, disabled }, context) {
      const { sealer } = options;
      const { accountId } = principalOf(context);
      const issues = new FieldIssues();
      if (!(await options.providerSlugs()).includes(providerSlug))
        issues.add("provider_slug", "is no provider that takes keys");
      checkSecret(issues, secret);
      if (name !== "") issues.checkName("name", name);
      issues.throwIfAny();
      const key = { accountId, providerSlug, secret, name, disabled };
      const row = await createProviderKey(database, sealer, key);
      return { providerKey: toProtoProviderKey(row) };
    },
    async getProviderKey({ id }, context) {
      checkUuids({ id });
      const row = await getProviderKey(database, principalOf(context).accountId, id);
      return { providerKey: toProtoProviderKey(row) };
    },
    async updateProviderKey({ id, name, disabled, secret }, context) {
      const issues = new FieldIssues();
      issues.checkUuid("id", id);
      if (secret !== undefined) checkSecret(issues, secret);
      if (name !== undefined && name !== "") issues.checkName("name", name);
      issues.throwIfAny();
      const bound = { id, account_id: principalOf(context).accountId };
      const row = await updateProviderKey(database, options.sealer, bound, { name, disabled, secret });
      return { providerKey: toProtoProviderKey(row) };
    },
    async deleteProviderKey({ id }, context) {
      checkUuids({ id });
      await deleteProviderKey(database, principalOf(context).accountId, id);
      return {};
    },
  };
}

function checkSecret(issues: FieldIssues, secret: string): void {
  if (secret === "") issues.add("secret", "must not be empty");
  else if (secret.length > providerSecret.maxLength)
    issues.add("secret", `must not be longer than ${providerSecret.maxLength} characters`);
  else if (!secretPattern.test(secret)) issues.add("secret", providerSecret.words);
}

function toProtoProviderKey(row: ProviderKeyRow): ProviderKey {
  return create(ProviderKeySchema, {
    id: row.id,
    providerSlug: row.provider_slug,
    name: row.name,
    label: row.label,
    disabled: row.disabled,
    createdAt: timestampFromDate(row.created_at),
    accountId: row.account_id,
  });
}

/** The handler by which the processes that call providers get an account's own key; they keep it for at most 5 s. */
export function createResolveHandlers(
  database: AccountDatabase,
  options: ProviderKeyOptions,
): Pick<ServiceImpl<typeof AccountInternalService>, "resolveProviderKey"> {
  return {
    async resolveProviderKey({ accountId, providerSlug }) {
      checkUuids({ account_id: accountId });
      const found = await openProviderKey(database, options.sealer, { accountId, providerSlug });
      return found ?? {};
    },
  };
}
