import { create, type JsonObject as ProtoObject } from "@bufbuild/protobuf";
import Type, { type Static } from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type ProviderPreferences,
  ProviderPreferencesSchema,
  ProviderSort,
} from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import {
  maxLabelCharacters,
  maxOptionsBytes,
  maxProviders,
  maxTraceBytes,
} from "../../lib/generation/request-limits.ts";
import { maxBodyElements } from "../../lib/limits/json-bounds.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { stringEnum } from "../schema/field-schemas.ts";
import { isObject, type JsonObject, withoutNulls } from "./json-body.ts";

/** The longest text of a request, bytes: longer than any model takes. */
export const maxTextBytes = 384 * 1024;

const maxSlugLength = 256;
/** Far below what the decoders of services take, which count several levels for each of these. */
const maxJsonDepth = 20;

const slugs = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ maxLength: maxSlugLength }), { maxItems: maxProviders, description }),
  );

const freeObject = (description: string) =>
  Type.Object({}, { additionalProperties: Type.Unknown(), maxProperties: maxBodyElements, description });

/** Of labels: the database in which they end has no text that holds U+0000. */
export const labelPattern = "^[^\\u0000]*$";

const label = (description: string) =>
  Type.Optional(Type.String({ maxLength: maxLabelCharacters, pattern: labelPattern, description }));

const providerSchema = Type.Object(
  {
    order: slugs("Providers to try first, in this order."),
    only: slugs("The only providers that may serve."),
    ignore: slugs("Providers that must not serve."),
    allow_fallbacks: Type.Optional(
      Type.Boolean({
        description: "Whether another endpoint may be tried after the first failed; default true.",
      }),
    ),
    sort: Type.Optional(
      stringEnum(["price", "latency", "throughput"], {
        description: "What to order candidates by, after `order`.",
      }),
    ),
    options: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: freeObject("Parameters by the provider's own names."),
          maxProperties: maxProviders,
          description: "Passed through to the named provider alone; at most 64 KiB, on at most 20 levels.",
        },
      ),
    ),
  },
  {
    description:
      "Steers which endpoint serves, and what is passed through to it. Null counts as absent in it, too.",
  },
);

/** The fields that every generation takes, speech and images alike, as members of a JSON Schema object. */
export const generationFields = {
  provider: Type.Optional(providerSchema),
  user: label("Your own end user; kept with the usage record."),
  session_id: label("Groups requests; kept with the usage record."),
  trace: Type.Optional(
    freeObject("Kept with the usage record; at most 16 KiB, on at most 20 levels, and without U+0000."),
  ),
};

type ProviderBody = Static<typeof providerSchema>;

/** The body with nulls taken away where they count as absent: its own members and those of `provider`. */
export function withoutFieldNulls(body: JsonObject): JsonObject {
  const fields = withoutNulls(body);
  if (!isObject(fields.provider)) return fields;
  const provider = withoutNulls(fields.provider);
  if (!isObject(provider.options)) return { ...fields, provider };
  return { ...fields, provider: { ...provider, options: withoutNulls(provider.options) } };
}

/** Throws invalid_body when `trace` or `provider.options` is too large, too deep or holds a number beyond a double. */
export function checkFreeFields(trace: object | undefined, provider: ProviderBody | undefined): void {
  const issues = [
    ...freeObjectIssues("trace", trace, maxTraceBytes),
    ...freeObjectIssues("provider.options", provider?.options, maxOptionsBytes),
  ];
  if (issues.length > 0) throw DomainError.invalid(issues);
}

function toProtoPreferences(provider: ProviderBody): ProviderPreferences {
  const { order, only, ignore, allow_fallbacks: allowFallbacks, sort, options } = provider;
  return create(ProviderPreferencesSchema, {
    order: order ?? [],
    only: only ?? [],
    ignore: ignore ?? [],
    ...(allowFallbacks === undefined ? {} : { allowFallbacks }),
    sort: sort === undefined ? ProviderSort.UNSPECIFIED : protoSorts[sort],
    options: (options ?? {}) as ProviderPreferences["options"],
  });
}

/** Longer than any name in a catalogue. */
export const maxNameLength = 256;

interface GenerationBody {
  readonly model: string;
  readonly user?: string;
  readonly session_id?: string;
  readonly provider?: ProviderBody;
  readonly trace?: object;
}

/** These fields as every generation's request has them. Throws model_unknown for a name too long for any catalogue. */
export function toProtoGeneration({ model, provider, trace, ...labels }: GenerationBody) {
  if (model.length > maxNameLength) throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
  return {
    model,
    user: labels.user ?? "",
    sessionId: labels.session_id ?? "",
    ...(provider === undefined ? {} : { provider: toProtoPreferences(provider) }),
    ...(trace === undefined ? {} : { trace: trace as ProtoObject }),
  };
}

const protoSorts = {
  price: ProviderSort.PRICE,
  latency: ProviderSort.LATENCY,
  throughput: ProviderSort.THROUGHPUT,
} as const;

/** Throws invalid_body for a text that no model takes. */
export function checkText(path: string, text: string): void {
  if (Buffer.byteLength(text) <= maxTextBytes) return;
  throw DomainError.invalid([{ path, message: "is longer than any model takes" }]);
}

/** What is wrong with an object whose members are not ours: too large, too deep, or a number beyond a double. */
export function freeObjectIssues(
  path: string,
  value: object | undefined,
  maxBytes: number,
): readonly Issue[] {
  if (value === undefined) return [];
  const message = jsonFault(value, maxBytes);
  return message === undefined ? [] : [{ path, message }];
}

function jsonFault(root: object, maxBytes: number): string | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  let textLength = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (typeof value === "string") textLength += value.length;
    if (typeof value === "number" && !Number.isFinite(value)) return "must not hold numbers beyond a double";
    if (typeof value !== "object" || value === null) continue;
    if (depth > maxJsonDepth) return `must not nest deeper than ${maxJsonDepth} levels`;
    const isList = Array.isArray(value);
    for (const [key, member] of Object.entries(value)) {
      if (!isList) textLength += key.length;
      open.push({ value: member, depth: depth + 1 });
    }
  }
  const isTooLong = textLength > maxBytes || Buffer.byteLength(JSON.stringify(root)) > maxBytes;
  return isTooLong ? `must not be longer than ${maxBytes} bytes as JSON` : undefined;
}
