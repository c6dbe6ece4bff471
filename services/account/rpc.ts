import type { ServiceImpl } from "@connectrpc/connect";
import type { Key } from "../../gen/media/account/v1/key_pb.ts";
import type { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import { type Clock, systemClock } from "../../lib/runtime/clock.ts";
import { toProtoKey } from "./convert.ts";
import {
  checkKeyHash,
  fromProtoCreateKeyRequest,
  fromProtoListKeysRequest,
  fromProtoRotateKeyRequest,
  fromProtoUpdateKeyRequest,
} from "./keys/key-requests.ts";
import { rotateKey } from "./keys/key-rotation.ts";
import { noSpending, readSpending } from "./keys/key-spending.ts";
import { createKey, deleteKey, getKey, listKeys, updateKey } from "./keys/keys.ts";
import type { AccountDatabase, AccountTransaction, ApiKeyRow } from "./store.ts";

/** The handlers of KeyService; each answers for the account of the calling key alone. */
export function createKeyHandlers(
  database: AccountDatabase,
  maxRateLimitPerMinute: number,
  clock: Clock = systemClock,
): Partial<ServiceImpl<typeof KeyService>> {
  const inTransaction = <T>(work: (transaction: AccountTransaction) => Promise<T>) =>
    database.transaction().execute(work);
  return {
    async listKeys(request, context) {
      const page = fromProtoListKeysRequest(request);
      const { rows, totalCount } = await listKeys(database, principalOf(context).accountId, page);
      return { keys: await showKeys(database, rows), totalCount };
    },
    async createKey(request, context) {
      const { accountId, memberId } = principalOf(context);
      const asked = fromProtoCreateKeyRequest(request, { nowMs: clock.nowMs(), maxRateLimitPerMinute });
      const key = { ...asked, member_id: asked.member_id ?? (memberId || null) };
      const { secret, row } = await inTransaction((transaction) => createKey(transaction, accountId, key));
      return { secret, key: toProtoKey(row, noSpending) };
    },
    async getKey({ hash }, context) {
      const row = await getKey(database, principalOf(context).accountId, checkKeyHash(hash));
      return await showKey(database, row);
    },
    async getCurrentKey(_request, context) {
      const { accountId, keyHash } = principalOf(context);
      const row = await getKey(database, accountId, keyHash);
      return await showKey(database, row);
    },
    async updateKey(request, context) {
      const hash = checkKeyHash(request.hash);
      const change = fromProtoUpdateKeyRequest(request, { maxRateLimitPerMinute });
      const { accountId } = principalOf(context);
      const row = await inTransaction((transaction) => updateKey(transaction, accountId, hash, change));
      return await showKey(database, row);
    },
    async deleteKey({ hash }, context) {
      await deleteKey(database, principalOf(context).accountId, checkKeyHash(hash));
      return {};
    },
    async rotateKey(request, context) {
      const rotation = fromProtoRotateKeyRequest(request);
      const { accountId } = principalOf(context);
      const { secret, row } = await inTransaction((transaction) =>
        rotateKey(transaction, accountId, rotation),
      );
      return { secret, ...(await showKey(database, row)) };
    },
  };
}

async function showKeys(database: AccountDatabase, rows: readonly ApiKeyRow[]): Promise<Key[]> {
  const spending = await readSpending(
    database,
    rows.map((row) => row.rate_bucket),
  );
  return rows.map((row) => toProtoKey(row, spending.get(row.rate_bucket) ?? noSpending));
}

/** A key as it is shown, with what its line has spent. */
export async function showKey(database: AccountDatabase, row: ApiKeyRow): Promise<{ key?: Key }> {
  const [key] = await showKeys(database, [row]);
  return key === undefined ? {} : { key };
}
