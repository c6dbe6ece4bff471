import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { RecordDestinationActionRequestSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { operatorOf } from "../../lib/identity/caller.ts";
import type { Log } from "../../lib/runtime/log.ts";
import type { DestinationHandlerOptions } from "./rpc.ts";
import { toProtoDestination } from "./settings/convert.ts";
import { readKey } from "./settings/destination-requests.ts";
import { getDestination, pauseDestination, resumeDestination } from "./settings/destinations.ts";
import { resealDestinations } from "./settings/reseal.ts";
import type { ShownDestinationRow } from "./store.ts";

/** Writes into the audit what an operator is about to do with a destination; it is not done when that rejects. */
export type RecordDestinationAction = (
  action: MessageInitShape<typeof RecordDestinationActionRequestSchema>,
) => Promise<unknown>;

interface AdminHandlerOptions extends DestinationHandlerOptions {
  readonly log: Log;
  readonly recordAction: RecordDestinationAction;
}

/** The handlers of DestinationAdminService. */
export function createAdminHandlers(
  options: AdminHandlerOptions,
): ServiceImpl<typeof DestinationAdminService> {
  const { database, keeper, attempter, log } = options;
  const shown = (row: ShownDestinationRow) => ({ destination: toProtoDestination(row, keeper) });
  return {
    async resealDestinations(_request, context) {
      const operator = operatorOf(context);
      const { resealed, current, unreadable } = await resealDestinations(database, keeper, context.signal);
      log.info({ operator, resealed, current, unreadable }, "settings of destinations sealed anew");
      return {
        resealed: BigInt(resealed),
        current: BigInt(current),
        unreadable: BigInt(unreadable),
      };
    },
    async pauseAccountDestination(request, context) {
      const { key } = await recorded(options, "pause", operatorOf(context), request);
      return shown(await pauseDestination(database, key));
    },
    async resumeAccountDestination(request, context) {
      const { key } = await recorded(options, "resume", operatorOf(context), request);
      const row = await resumeDestination(database, key);
      options.onDue();
      return shown(row);
    },
    async testAccountDestination(request, context) {
      const { row } = await recorded(options, "test", operatorOf(context), request);
      const { isTaken, status, cause } = await attempter.test(row, context.signal);
      return { ok: isTaken, responseStatus: status, cause };
    },
  };
}

/** A destination that is there, once the audit says what becomes of it. Throws `record_unknown`. */
async function recorded(
  { database, recordAction }: AdminHandlerOptions,
  action: "pause" | "resume" | "test",
  operator: string,
  { accountId, id }: { readonly accountId: string; readonly id: string },
) {
  const key = readKey(id, accountId);
  const row = await getDestination(database, key);
  await recordAction({ operator, action, accountId, destinationId: id });
  return { key, row };
}
