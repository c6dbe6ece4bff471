import { randomUUID } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  CreateDestinationRequest,
  UpdateDestinationRequest,
} from "../../gen/media/destination/v1/destination_pb.ts";
import type { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { Attempter } from "./delivery/attempt.ts";
import { toProtoDelivery, toProtoDestination } from "./settings/convert.ts";
import {
  fromProtoCreateRequest,
  fromProtoUpdateRequest,
  readKey,
  readPage,
} from "./settings/destination-requests.ts";
import {
  changeDestination,
  createDestination,
  type DestinationKey,
  deleteDestination,
  getDestination,
  listDeliveries,
  listDestinations,
  resumeDestination,
} from "./settings/destinations.ts";
import { mergeConfig } from "./settings/masked-config.ts";
import type { SettingsKeeper } from "./settings/settings-keeper.ts";
import type { DestinationDatabase, ShownDestinationRow } from "./store.ts";

/** What answers about destinations. */
export interface DestinationHandlerOptions {
  readonly database: DestinationDatabase;
  readonly keeper: SettingsKeeper;
  readonly attempter: Attempter;
  /** Called when something that waits may be due at once. */
  onDue(): void;
}

/** How often a change begins anew when others change the same destination. */
const maxChangeTries = 5;

/** The handlers of DestinationService; each answers for the account of the calling key alone. */
export function createDestinationHandlers(
  options: DestinationHandlerOptions,
): Partial<ServiceImpl<typeof DestinationService>> {
  const { database, keeper, attempter } = options;
  const shown = (row: ShownDestinationRow) => ({ destination: toProtoDestination(row, keeper) });
  return {
    async listDestinations(request, context) {
      const page = readPage(request);
      const { rows, totalCount } = await listDestinations(database, principalOf(context).accountId, page);
      const destinations = rows.map((row) => toProtoDestination(row, keeper));
      return { destinations, totalCount };
    },
    async createDestination(request, context) {
      const row = await makeDestination(options, principalOf(context).accountId, request);
      return shown(row);
    },
    async getDestination({ id }, context) {
      const row = await getDestination(database, readKey(id, principalOf(context).accountId));
      return shown(row);
    },
    async updateDestination(request, context) {
      const key = readKey(request.id, principalOf(context).accountId);
      const row = await updateDestination(options, key, request);
      options.onDue();
      return shown(row);
    },
    async deleteDestination({ id }, context) {
      await deleteDestination(database, readKey(id, principalOf(context).accountId));
      return {};
    },
    async testDestination({ id }, context) {
      const row = await getDestination(database, readKey(id, principalOf(context).accountId));
      const { isTaken, status, cause } = await attempter.test(row, context.signal);
      return { ok: isTaken, responseStatus: status, cause };
    },
    async listDeliveries({ destinationId, ...page }, context) {
      const key = readKey(destinationId, principalOf(context).accountId);
      const { rows, totalCount } = await listDeliveries(database, key, readPage(page));
      return { deliveries: rows.map(toProtoDelivery), totalCount };
    },
    async resumeDestination({ id }, context) {
      const row = await resumeDestination(database, readKey(id, principalOf(context).accountId));
      options.onDue();
      return shown(row);
    },
  };
}

async function makeDestination(
  { database, keeper }: DestinationHandlerOptions,
  accountId: string,
  request: CreateDestinationRequest,
): Promise<ShownDestinationRow> {
  const issues: Issue[] = [];
  const fields = fromProtoCreateRequest(request, issues);
  const type = keeper.type(request.type);
  if (type === undefined) {
    issues.push({ path: "type", message: "is no type of destination" });
    throw DomainError.invalid(issues);
  }
  const change = request.config ?? {};
  const given = mergeConfig({ stored: {}, change, secrets: type.secrets, issues });
  const config = keeper.check(type, given, issues);
  if (config === undefined || issues.length > 0) throw DomainError.invalid(issues);
  const bound = { id: randomUUID(), account_id: accountId };
  const sealed = keeper.seal(config, bound);
  return createDestination(database, { ...bound, ...fields, type: type.slug, sealed });
}

async function updateDestination(
  options: DestinationHandlerOptions,
  key: DestinationKey,
  request: UpdateDestinationRequest,
): Promise<ShownDestinationRow> {
  for (let tries = 0; tries < maxChangeTries; tries++) {
    const row = await getDestination(options.database, key);
    const issues: Issue[] = [];
    const fields = fromProtoUpdateRequest(request, issues);
    const sealed = resealedSettings(options, row, request, issues);
    if (issues.length > 0) throw DomainError.invalid(issues);
    const changed = await changeDestination(options.database, row, { ...fields, sealed });
    if (changed !== undefined) return changed;
  }
  throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "others change this destination just now");
}

/** The settings as they will be; undefined when they stay. */
function resealedSettings(
  { keeper }: DestinationHandlerOptions,
  row: ShownDestinationRow,
  { config: change }: UpdateDestinationRequest,
  issues: Issue[],
): Buffer | undefined {
  if (change === undefined) return undefined;
  const type = keeper.type(row.type);
  if (type === undefined) {
    issues.push({ path: "config", message: "is of a type that is not known any more" });
    return undefined;
  }
  const merged = mergeConfig({ stored: keeper.open(row) ?? {}, change, secrets: type.secrets, issues });
  const config = keeper.check(type, merged, issues);
  return config && keeper.seal(config, row);
}
