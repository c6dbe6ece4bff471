import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { GenerationEventSchema } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { parseRetryAfterMs } from "../../../lib/http/retry-after.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";
import type { DestinationTypes } from "../../../services/destination/settings/settings-keeper.ts";
import {
  type Batch,
  type DeliveryContext,
  DeliveryError,
  type DestinationType,
} from "../../../services/destination/types/contract.ts";

/** Settings of the type that tests deliver with. */
export interface PlainConfig {
  readonly url: string;
  readonly method: "POST" | "PUT";
  readonly token?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a receiver of the type gets. */
export interface PlainBody {
  readonly id: string;
  readonly disclosed: Batch["disclosed"];
  /** As protobuf's JSON has them. */
  readonly events: readonly JsonObject[];
}

/** A type with the simplest format there is. */
export function createPlainType(slug: string, maxBatchEvents = 50): DestinationType<PlainConfig> {
  return {
    slug,
    secrets: ["token"],
    maxBatchEvents,
    readConfig: readPlainConfig,
    urlsOf: ({ url }) => [new URL(url)],
    deliver: ({ id, disclosed, events }, config, context) => {
      const jsonEvents = events.map((event) => toJson(GenerationEventSchema, event) as JsonObject);
      return post({ id, disclosed, events: jsonEvents }, config, context);
    },
    test: (config, context) => post({ test: true }, config, context),
  };
}

/** Two types of this kind, by slug. */
export const plainTypes: DestinationTypes = new Map(
  ["plain", "other"].map((slug) => [slug, createPlainType(slug) as DestinationType<unknown>]),
);

function readPlainConfig(config: JsonObject) {
  const issues: Issue[] = [];
  const text = (name: string) => {
    const value = config[name] ?? undefined;
    if (value === undefined || typeof value === "string") return value;
    issues.push({ path: `config.${name}`, message: "must be a text" });
    return undefined;
  };
  const [url = "", method = "POST", token] = [text("url"), text("method"), text("token")];
  if (!/^https?:/.test(URL.parse(url)?.protocol ?? "")) {
    issues.push({ path: "config.url", message: "must be an http or https URL" });
  }
  if (method !== "POST" && method !== "PUT") {
    issues.push({ path: "config.method", message: "must be POST or PUT" });
  }
  if (issues.length > 0) return { issues };
  const headers = (config.headers ?? {}) as Record<string, string>;
  return { config: { url, method, ...(token === undefined ? {} : { token }), headers } as PlainConfig };
}

async function post(body: object, { url, method, token, headers }: PlainConfig, context: DeliveryContext) {
  const answer = await context.http.send({
    method,
    url,
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: Buffer.from(JSON.stringify(body)),
    signal: context.signal,
  });
  if (answer.status < 300) return { status: answer.status };
  const retryAfterMs = parseRetryAfterMs(answer.headers, context.nowMs());
  throw new DeliveryError(`the receiver says ${answer.status}`, {
    status: answer.status,
    cause: Buffer.from(answer.body).toString(),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}
