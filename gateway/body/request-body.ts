import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { BodyBytes } from "../../lib/limits/body-bytes.ts";
import type { ByteBudget, ByteOwner } from "../../lib/limits/byte-budget.ts";
import { collectBody } from "../../lib/limits/collect-body.ts";
import { JsonBounds, maxBodyElements } from "../../lib/limits/json-bounds.ts";
import { longStringBytes } from "../../lib/limits/long-strings.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Exchange } from "../http/exchange.ts";
import type { JsonObject } from "./json-body.ts";
import { type LargeJson, parseLargeJsonBody } from "./large-json.ts";

/** What bounds a request's body. */
export interface BodyLimits {
  maxBytes: number;
  /** For each wait for room, and for the arrival. */
  timeoutMs: number;
  budget: ByteBudget;
}

/** What a JSON body may hold, known fields or not: so little that nothing that is made of it takes much. */
const bounds = { maxElements: maxBodyElements, maxDepth: 64, maxKeyBytes: 4096, longStringBytes };

const reservedAtOnceBytes = 64 << 10;
/** How long a client should wait after it found no room, milliseconds. */
const retryAfterMs = 1000;
const keyWeight = 2;
const accountWeight = 3;

/**
 * The JSON object that a request's body holds, which is scanned while it arrives. Throws what `receiveBody` and
 * `parseJsonBody` throw, and invalid_body for one beyond the bounds.
 */
export async function readJsonBody(exchange: Exchange, limits: BodyLimits): Promise<JsonObject> {
  return (await readLargeJsonBody(exchange, limits, [])).value;
}

/** The same, an empty object where the request has no body. */
export async function readOptionalJsonBody(exchange: Exchange, limits: BodyLimits): Promise<JsonObject> {
  const scan = new JsonBounds(bounds);
  const body = await receiveBody(exchange, limits, scan);
  return body.size === 0
    ? {}
    : (await parseLargeJsonBody(body, scan.longStrings, exchange.request.headers, [])).value;
}

/** A body of another kind, whole. Throws what `receiveBody` throws. */
export async function readBody(exchange: Exchange, limits: BodyLimits): Promise<Buffer> {
  return (await receiveBody(exchange, limits)).whole();
}

/** As `readJsonBody`, of a body that may be as large as the images in it, which stand in the members of these names. */
export async function readLargeJsonBody(
  exchange: Exchange,
  limits: BodyLimits,
  imagesMembers: readonly string[],
): Promise<LargeJson> {
  const scan = new JsonBounds(bounds);
  const body = await receiveBody(exchange, limits, scan);
  return await parseLargeJsonBody(body, scan.longStrings, exchange.request.headers, imagesMembers);
}

/**
 * The whole body, empty when the request has none; `scan` sees it as it comes. Its bytes are held until the answer has
 * ended, and a client that waits for `100 Continue` gets it once there is room. Throws body_too_large (from
 * Content-Length before a byte is read, else while reading), invalid_body when it does not arrive in time,
 * service_unavailable when there is no room, cancelled when the client leaves, and what the scan throws.
 */
async function receiveBody(exchange: Exchange, limits: BodyLimits, scan?: JsonBounds): Promise<BodyBytes> {
  const { request, response } = exchange;
  const { headers } = request;
  const isChunked = headers["transfer-encoding"] !== undefined;
  const mostBytes = isChunked ? limits.maxBytes : Number(headers["content-length"] ?? 0);
  if (mostBytes > limits.maxBytes) throw tooLarge();
  if (mostBytes === 0) return new BodyBytes();
  if (response.destroyed) throw new DomainError(ErrorReason.CANCELLED, "the client went away");
  const share = limits.budget.open(ownersOf(exchange));
  response.once("close", () => share.release());
  return await collectBody(request, {
    share,
    timeoutMs: limits.timeoutMs,
    reserve: (size) => Math.min(size - (size % reservedAtOnceBytes) + reservedAtOnceBytes, mostBytes),
    begin: () => {
      if (exchange.awaitsContinue) response.writeContinue();
    },
    inspect(piece, { size }) {
      if (size > mostBytes) throw tooLarge();
      scan?.take(piece);
    },
    noRoom,
  });
}

/** A key and its account; what a key has rotated from counts as the same one. */
function ownersOf({ principal }: Exchange): readonly ByteOwner[] {
  if (principal === undefined) return [];
  return [
    { name: `key ${principal.rateBucket || principal.keyHash}`, weight: keyWeight },
    { name: `account ${principal.accountId}`, weight: accountWeight },
  ];
}

function tooLarge(): DomainError {
  return new DomainError(ErrorReason.BODY_TOO_LARGE, "the body is too large");
}

function noRoom(): DomainError {
  return new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "no room for the body", { retryAfterMs });
}
