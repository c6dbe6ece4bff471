import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CreateKeyResponseSchema,
  GetCurrentKeyResponseSchema,
  GetKeyResponseSchema,
  ListKeysResponseSchema,
  UpdateKeyResponseSchema,
} from "../../gen/media/account/v1/key_pb.ts";
import type { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import { type Clock, systemClock } from "../../lib/runtime/clock.ts";
import { toProtoKey } from "./convert.ts";
import {
  checkKeyHash,
  fromProtoCreateKeyRequest,
  fromProtoListKeysRequest,
  fromProtoUpdateKeyRequest,
} from "./key-requests.ts";
import { createKey, deleteKey, getKey, listKeys, updateKey } from "./keys.ts";
import type { AccountDatabase } from "./store.ts";

/** The handlers of KeyService; each answers for the account of the calling key alone. */
export function createKeyHandlers(
  database: AccountDatabase,
  clock: Clock = systemClock,
): Partial<ServiceImpl<typeof KeyService>> {
  return {
    async listKeys(request, context) {
      const page = fromProtoListKeysRequest(request);
      const { rows, totalCount } = await listKeys(database, principalOf(context).accountId, page);
      return create(ListKeysResponseSchema, { keys: rows.map(toProtoKey), totalCount });
    },
    async createKey(request, context) {
      const { accountId, memberId } = principalOf(context);
      const asked = fromProtoCreateKeyRequest(request, clock.nowMs());
      const key = { ...asked, memberId: asked.memberId ?? (memberId || null) };
      const { secret, row } = await database
        .transaction()
        .execute((transaction) => createKey(transaction, accountId, key));
      return create(CreateKeyResponseSchema, { secret, key: toProtoKey(row) });
    },
    async getKey({ hash }, context) {
      const row = await getKey(database, principalOf(context).accountId, checkKeyHash(hash));
      return create(GetKeyResponseSchema, { key: toProtoKey(row) });
    },
    async getCurrentKey(_request, context) {
      const { accountId, keyHash } = principalOf(context);
      const row = await getKey(database, accountId, keyHash);
      return create(GetCurrentKeyResponseSchema, { key: toProtoKey(row) });
    },
    async updateKey(request, context) {
      const hash = checkKeyHash(request.hash);
      const change = fromProtoUpdateKeyRequest(request);
      const row = await updateKey(database, principalOf(context).accountId, hash, change);
      return create(UpdateKeyResponseSchema, { key: toProtoKey(row) });
    },
    async deleteKey({ hash }, context) {
      await deleteKey(database, principalOf(context).accountId, checkKeyHash(hash));
      return {};
    },
  };
}
