import type {
  ApiKeyHashes,
  CreateDestinationRequest,
  UpdateDestinationRequest,
} from "../../../gen/media/destination/v1/destination_pb.ts";
import { isKeyHash } from "../../../lib/identity/api-key.ts";
import { destinationPage, maxKeyHashes, minSamplingRate } from "../../../lib/limits/destination-limits.ts";
import { nameFault } from "../../../lib/limits/record-name.ts";
import { DomainError, type Issue } from "../../../lib/runtime/domain-error.ts";
import { isUuid } from "../../../lib/runtime/uuid.ts";
import {
  type DestinationChange,
  type DestinationFields,
  type DestinationKey,
  type Page,
  unknownDestination,
} from "./destinations.ts";
import { fromProtoFilterRules } from "./filter-rules.ts";

/** Reads what is asked for a new destination, its type and settings aside; what is wrong goes to `issues`. */
export function fromProtoCreateRequest(
  request: CreateDestinationRequest,
  issues: Issue[],
): DestinationFields {
  const { samplingRate = 1, apiKeyHashes, filterRules } = request;
  return {
    name: readName(request.name, issues),
    enabled: request.enabled ?? true,
    privacy_mode: request.privacyMode,
    sampling_rate: readSamplingRate(samplingRate, issues),
    key_hashes: apiKeyHashes === undefined ? null : readKeyHashes(apiKeyHashes, issues),
    filter_rules: filterRules === undefined ? null : fromProtoFilterRules(filterRules, issues),
    tells_cost: request.broadcastGenerationCost,
    tells_identity: request.broadcastGenerationIdentity,
    tells_request_context: request.broadcastGenerationRequestContext,
  };
}

/** Reads what is to be different, settings aside; what is wrong goes to `issues`. */
export function fromProtoUpdateRequest(
  request: UpdateDestinationRequest,
  issues: Issue[],
): Omit<DestinationChange, "sealed"> {
  const { name, samplingRate, apiKeyHashes, filterRules } = request;
  const keyHashes = apiKeyHashes && readKeyHashes(apiKeyHashes, issues);
  const rules = filterRules && fromProtoFilterRules(filterRules, issues);
  return {
    name: name === undefined ? undefined : readName(name, issues),
    enabled: request.enabled,
    privacy_mode: request.privacyMode,
    sampling_rate: samplingRate === undefined ? undefined : readSamplingRate(samplingRate, issues),
    key_hashes: request.clearApiKeyHashes ? null : keyHashes,
    filter_rules: request.clearFilterRules ? null : rules,
    tells_cost: request.broadcastGenerationCost,
    tells_identity: request.broadcastGenerationIdentity,
    tells_request_context: request.broadcastGenerationRequestContext,
  };
}

function readName(name: string, issues: Issue[]): string {
  const message = nameFault(name);
  if (message !== undefined) issues.push({ path: "name", message });
  return name;
}

function readSamplingRate(rate: number, issues: Issue[]): number {
  if (!(rate >= minSamplingRate && rate <= 1)) {
    issues.push({ path: "sampling_rate", message: `must be a number from ${minSamplingRate} to 1` });
  }
  return rate;
}

function readKeyHashes({ values }: ApiKeyHashes, issues: Issue[]): string[] {
  const path = "api_key_hashes.values";
  if (values.length === 0) issues.push({ path, message: "must not be empty" });
  if (values.length > maxKeyHashes) issues.push({ path, message: `must not be more than ${maxKeyHashes}` });
  const hashes = values.slice(0, maxKeyHashes).map((value) => value.toLowerCase());
  for (const [index, hash] of hashes.entries()) {
    if (!isKeyHash(hash)) {
      issues.push({ path: `${path}.${index}`, message: "must be 64 hex characters" });
    }
  }
  return [...new Set(hashes)];
}

interface PageRequest {
  readonly offset: number;
  readonly limit?: number | undefined;
}

/** Reads which page is asked for. Throws `invalid_body`. */
export function readPage({ offset, limit = destinationPage.limit.default }: PageRequest): Page {
  const issues: Issue[] = [];
  const { maxOffset } = destinationPage;
  const { maximum: maxPageSize } = destinationPage.limit;
  if (offset < 0 || offset > maxOffset) {
    issues.push({ path: "offset", message: `must be a whole number from 0 to ${maxOffset}` });
  }
  if (limit < 1 || limit > maxPageSize) {
    issues.push({ path: "limit", message: `must be a whole number from 1 to ${maxPageSize}` });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
  return { offset, limit };
}

/** Names an account's destination. What is no id is the id of none: throws `record_unknown`. */
export function readKey(id: string, accountId: string): DestinationKey {
  if (!isUuid(id)) throw unknownDestination();
  return { id, accountId };
}
