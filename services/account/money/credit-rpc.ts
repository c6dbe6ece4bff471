import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { GetCreditsResponseSchema } from "../../../gen/media/account/v1/credit_pb.ts";
import type { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { principalOf } from "../../../lib/identity/caller.ts";
import { getAccount } from "../accounts/accounts.ts";
import type { AccountDatabase } from "../store.ts";

/** The handlers of CreditService; each answers for the account of the calling key alone. */
export function createCreditHandlers(database: AccountDatabase): Partial<ServiceImpl<typeof CreditService>> {
  return {
    async getCredits(_request, context) {
      const account = await getAccount(database, principalOf(context).accountId);
      return create(GetCreditsResponseSchema, {
        totalCreditsNanoUsd: account.granted_nano_usd,
        totalUsageNanoUsd: account.charged_nano_usd,
        heldNanoUsd: account.held_nano_usd,
      });
    },
  };
}
