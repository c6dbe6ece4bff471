/** What speech and images have in common: requests for content, and what an answer says beside it. */
import type { AttemptContext, TokenUsage } from "../contract.ts";
import { ProviderError } from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { type ErrorMeanings, isRecord } from "../upstream/failure.ts";
import { jsonBody } from "../upstream/json-body.ts";
import { send } from "../upstream/send.ts";
import { parseTokenCount } from "../upstream/token-count.ts";

/** A JSON object. */
type JsonRecord = Readonly<Record<string, unknown>>;

/** Google's canonical codes (google/rpc/code.proto) and reasons of its ErrorInfo. */
const meanings: ErrorMeanings = new Map([
  ["api_key_invalid", "credentials"],
  ["api_key_service_blocked", "credentials"],
  ["service_disabled", "credentials"],
  ["billing_disabled", "credentials"],
  ["unauthenticated", "credentials"],
  ["permission_denied", "credentials"],
  // The API is not to be had from this place or without billing.
  ["failed_precondition", "credentials"],
  ["resource_exhausted", "overloaded"],
  ["unavailable", "overloaded"],
  ["deadline_exceeded", "timeout"],
  ["invalid_argument", "invalid_request"],
  ["not_found", "invalid_request"],
  ["internal", "upstream"],
  ["unknown", "upstream"],
]);

/** Reasons of an end that are the usage policy's, by which a candidate or a whole prompt is refused. */
const policyReasons =
  /^(SAFETY|IMAGE_SAFETY|PROHIBITED_CONTENT|IMAGE_PROHIBITED_CONTENT|BLOCKLIST|SPII|RECITATION|IMAGE_RECITATION)$/;

/** What a failure of one attempt is read with. */
export function failuresOf(text: string, { connection }: AttemptContext) {
  return { secrets: [connection.apiKey, text], meanings };
}

/** One request for content of a model. */
export interface ContentRequest {
  readonly model: string;
  readonly method: "generateContent" | "streamGenerateContent?alt=sse";
  /** The caller's text, which no error may show. */
  readonly text: string;
  readonly body: JsonRecord;
  readonly maxResponseBytes?: number;
}

/** Sends it; resolves with the answer's headers. Throws ProviderError. */
export async function requestContent(
  http: ProviderHttp,
  { model, method, text, body, maxResponseBytes }: ContentRequest,
  context: AttemptContext,
): Promise<ProviderHttpResponse> {
  const { connection, signal, onSent } = context;
  const request = {
    method: "POST" as const,
    url: endpointUrl(connection.baseUrl, `/v1beta/models/${encodeURIComponent(model)}:${method}`),
    headers: { "x-goog-api-key": connection.apiKey, "content-type": "application/json" },
    body: jsonBody(body),
    signal,
    onSent,
    ...(maxResponseBytes !== undefined && { maxResponseBytes }),
  };
  return await send(http, request, failuresOf(text, context));
}

/** What one answer, or one event of a stream of them, holds. */
export interface Content {
  readonly inlineData: readonly JsonRecord[];
  /** Why it ended; undefined while it goes on. */
  readonly finishReason: string | undefined;
  readonly tokens: TokenUsage | undefined;
}

/** Reads an answer of the first candidate, thoughts left out. Throws ProviderError where the prompt was refused. */
export function readContent(answer: JsonRecord): Content {
  const { promptFeedback, candidates, usageMetadata } = answer;
  if (isRecord(promptFeedback) && typeof promptFeedback.blockReason === "string") {
    throw refusedBecause(promptFeedback.blockReason);
  }
  const [candidate] = Array.isArray(candidates) ? candidates.filter(isRecord) : [];
  const content = isRecord(candidate?.content) ? candidate.content : {};
  const parts = Array.isArray(content.parts) ? content.parts.filter(isRecord) : [];
  return {
    inlineData: parts
      .filter(({ thought }) => thought !== true)
      .map(({ inlineData }) => inlineData)
      .filter(isRecord),
    finishReason: typeof candidate?.finishReason === "string" ? candidate.finishReason : undefined,
    tokens: parseUsage(usageMetadata),
  };
}

/** The failure of an answer that ended for this reason; undefined for one that is whole. */
export function failureOfEnd(finishReason: string | undefined): ProviderError | undefined {
  if (finishReason === "STOP") return undefined;
  if (finishReason === undefined) {
    return new ProviderError("network", "The upstream's stream ended before its last event.");
  }
  return refusedBecause(finishReason);
}

function refusedBecause(reason: string): ProviderError {
  if (policyReasons.test(reason)) {
    return new ProviderError("content_policy", "The upstream's policy refused it.", {
      status: 200,
      cause: reason,
    });
  }
  return new ProviderError("upstream", "The upstream did not finish.", { status: 200, cause: reason });
}

/** Thoughts are output that is billed, but no candidate's. */
function parseUsage(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const reasoning = parseTokenCount(usage.thoughtsTokenCount);
  const output = tokensOf(usage.candidatesTokensDetails);
  const [image, audio] = [output("IMAGE"), output("AUDIO")];
  return {
    prompt: parseTokenCount(usage.promptTokenCount),
    completion: parseTokenCount(usage.candidatesTokenCount) + reasoning,
    reasoning,
    cachedPrompt: parseTokenCount(usage.cachedContentTokenCount),
    imagePrompt: tokensOf(usage.promptTokensDetails)("IMAGE") ?? 0,
    ...(image !== undefined && { imageCompletion: image }),
    ...(audio !== undefined && { audioCompletion: audio }),
  };
}

function tokensOf(details: unknown): (modality: string) => number | undefined {
  const counts = Array.isArray(details) ? details.filter(isRecord) : [];
  return (modality) => {
    const found = counts.find((count) => count.modality === modality);
    return found === undefined ? undefined : parseTokenCount(found.tokenCount);
  };
}
