import { JsonBounds, type JsonBoundsOptions } from "../../lib/limits/json-bounds.ts";
import type { Exchange } from "../http/exchange.ts";
import { type BodyLimits, receiveBody } from "./body-arrival.ts";
import { type JsonObject, maxBodyElements, parseJsonBody } from "./json-body.ts";
import { type LargeJson, longStringBytes, parseLargeJsonBody } from "./large-json.ts";

/** What a JSON body may hold, known fields or not: so little that nothing that is made of it takes much. */
const bounds: JsonBoundsOptions = { maxElements: maxBodyElements, maxDepth: 64, maxKeyBytes: 4096 };

/**
 * The JSON object that a request's body holds, which is scanned while it arrives. Throws what `receiveBody` and
 * `parseJsonBody` throw, and invalid_body for one beyond the bounds.
 */
export async function readJsonBody(exchange: Exchange, limits: BodyLimits): Promise<JsonObject> {
  const body = await receiveBody(exchange, limits, new JsonBounds(bounds));
  return parseJsonBody(body.whole(), exchange.request.headers);
}

/** The same, an empty object where the request has no body. */
export async function readOptionalJsonBody(exchange: Exchange, limits: BodyLimits): Promise<JsonObject> {
  const body = await receiveBody(exchange, limits, new JsonBounds(bounds));
  return body.size === 0 ? {} : parseJsonBody(body.whole(), exchange.request.headers);
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
  const scan = new JsonBounds({ ...bounds, longStringBytes });
  const body = await receiveBody(exchange, limits, scan);
  return await parseLargeJsonBody(body, scan.longStrings, exchange.request.headers, imagesMembers);
}
