import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import {
  CreateKeyRequestSchema,
  RotateKeyRequestSchema,
  UpdateKeyRequestSchema,
} from "../../../gen/media/account/v1/key_pb.ts";
import { operatorOf } from "../../../lib/identity/caller.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import { toProtoKey } from "../convert.ts";
import {
  checkKeyHash,
  fromProtoCreateKeyRequest,
  fromProtoRotateKeyRequest,
  fromProtoUpdateKeyRequest,
} from "../keys/key-requests.ts";
import { rotateKey } from "../keys/key-rotation.ts";
import { noSpending } from "../keys/key-spending.ts";
import { createKey, updateKey } from "../keys/keys.ts";
import { showKey } from "../rpc.ts";
import type { AccountDatabase } from "../store.ts";
import { checkUuids } from "./admin-requests.ts";
import { writeAudit } from "./audit.ts";

interface AdminKeyOptions {
  readonly database: AccountDatabase;
  /** The most requests a minute that a key may be given. */
  readonly maxRateLimitPerMinute: number;
  readonly clock: Clock;
}

type KeyRpcs = "createAccountKey" | "updateAccountKey" | "rotateAccountKey";

/** The handlers of AccountAdminService that are about keys. */
export function createKeyAdminHandlers({
  database,
  maxRateLimitPerMinute,
  clock,
}: AdminKeyOptions): Pick<ServiceImpl<typeof AccountAdminService>, KeyRpcs> {
  return {
    async createAccountKey({ accountId, key = create(CreateKeyRequestSchema) }, context) {
      const operator = operatorOf(context);
      checkUuids({ account_id: accountId });
      const asked = fromProtoCreateKeyRequest(key, { nowMs: clock.nowMs(), maxRateLimitPerMinute }, "key.");
      const { secret, row } = await database.transaction().execute(async (transaction) => {
        const created = await createKey(transaction, accountId, asked, "key.member_id");
        const subject = created.row.hash;
        await writeAudit(transaction, { operator, action: "key.create", accountId, subject });
        return created;
      });
      return { secret, key: toProtoKey(row, noSpending) };
    },
    async updateAccountKey({ accountId, key = create(UpdateKeyRequestSchema) }, context) {
      const operator = operatorOf(context);
      checkUuids({ account_id: accountId });
      const hash = checkKeyHash(key.hash, "key.hash");
      const change = fromProtoUpdateKeyRequest(key, { maxRateLimitPerMinute }, "key.");
      const row = await database.transaction().execute(async (transaction) => {
        const updated = await updateKey(transaction, accountId, hash, change, { mayEndLast: true });
        await writeAudit(transaction, {
          operator,
          action: change.disabled === undefined ? "key.update" : switchOf(change.disabled),
          accountId,
          subject: hash,
        });
        return updated;
      });
      return await showKey(database, row);
    },
    async rotateAccountKey({ accountId, key = create(RotateKeyRequestSchema) }, context) {
      const operator = operatorOf(context);
      checkUuids({ account_id: accountId });
      const rotation = fromProtoRotateKeyRequest(key, "key.");
      const { secret, row } = await database.transaction().execute(async (transaction) => {
        const created = await rotateKey(transaction, accountId, rotation);
        const note = `its successor is ${created.row.hash}`;
        const subject = rotation.hash;
        await writeAudit(transaction, { operator, action: "key.rotate", accountId, subject, note });
        return created;
      });
      return { secret, ...(await showKey(database, row)) };
    },
  };
}

function switchOf(disabled: boolean): "key.disable" | "key.enable" {
  return disabled ? "key.disable" : "key.enable";
}
