import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  AuthenticateResponseSchema,
  type Principal,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { toProtoPrincipal } from "./convert.ts";
import { checkKeyHash } from "./key-requests.ts";
import { findUsableKey } from "./keys.ts";
import type { AccountDatabase } from "./store.ts";

/** The handlers of AccountInternalService. */
export function createInternalHandlers(
  database: AccountDatabase,
): Partial<ServiceImpl<typeof AccountInternalService>> {
  return {
    async authenticate({ keyHash }) {
      const principal = await findPrincipal(database, checkKeyHash(keyHash, "key_hash"));
      return create(AuthenticateResponseSchema, { principal });
    },
  };
}

/** Who a key speaks for, by its hash. Throws `key_unknown`, `key_disabled` or `key_expired`. */
export async function findPrincipal(database: AccountDatabase, keyHash: string): Promise<Principal> {
  return toProtoPrincipal(await findUsableKey(database, keyHash));
}
