import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ResealDestinationsResponseSchema } from "../../../gen/media/destination/v1/destination_admin_pb.ts";
import type { DestinationAdminService } from "../../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { callerKey } from "../../../lib/identity/caller.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { DestinationDatabase } from "../store.ts";
import { resealDestinations } from "./reseal.ts";
import type { SettingsKeeper } from "./settings-keeper.ts";

interface AdminHandlerOptions {
  readonly database: DestinationDatabase;
  readonly keeper: SettingsKeeper;
  readonly log: Log;
}

/** The handlers of DestinationAdminService. */
export function createAdminHandlers({
  database,
  keeper,
  log,
}: AdminHandlerOptions): Partial<ServiceImpl<typeof DestinationAdminService>> {
  return {
    async resealDestinations(_request, { signal, values }) {
      const { resealed, current, unreadable } = await resealDestinations(database, keeper, signal);
      const caller = values.get(callerKey);
      const operator = caller.kind === "operator" ? caller.subject : "";
      log.info({ operator, resealed, current, unreadable }, "settings of destinations sealed anew");
      return create(ResealDestinationsResponseSchema, {
        resealed: BigInt(resealed),
        current: BigInt(current),
        unreadable: BigInt(unreadable),
      });
    },
  };
}
