import { create, type JsonObject as ProtoObject } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import Type, { type Static, type TSchema } from "typebox";
import {
  type CreateDestinationRequest,
  CreateDestinationRequestSchema,
  FilterLogic,
  type FilterRules,
  FilterRulesSchema,
  type UpdateDestinationRequest,
  UpdateDestinationRequestSchema,
} from "../../gen/media/destination/v1/destination_pb.ts";
import {
  equalityOperators,
  existenceOperators,
  filterBounds,
  maxConfigBytes,
  maxKeyHashes,
  minSamplingRate,
  numberFields,
  numberOperators,
  textFields,
  textOperators,
} from "../../lib/limits/destination-limits.ts";
import { maxBodyElements } from "../../lib/limits/json-bounds.ts";
import { maxNameCharacters } from "../../lib/limits/record-name.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { freeObjectIssues } from "../body/generation-fields.ts";
import { bodyRules, compileCheck, type JsonObject, withoutNulls } from "../body/json-body.ts";
import { namePattern, nameWords, stringEnum } from "../schema/field-schemas.ts";
import { filterLogics } from "./answer.ts";

const config = Type.Object(
  {},
  {
    additionalProperties: Type.Unknown(),
    maxProperties: maxBodyElements,
    description: "The type's own settings, `headers` among them; at most 64 KiB, on at most 20 levels.",
  },
);

const name = Type.String({
  minLength: 1,
  maxLength: maxNameCharacters,
  pattern: namePattern,
  description: "A name for people.",
});
const patternWords = { name: nameWords, "api_key_hashes.*": "must be 64 hex characters" };

const flag = (description: string) => Type.Optional(Type.Boolean({ description }));

const rule = Type.Object({
  field: stringEnum([...textFields, ...numberFields], {
    description: `Texts: ${textFields.join(", ")}. Numbers: ${numberFields.join(", ")}; \`total_cost\` is in USD.`,
  }),
  operator: stringEnum([...equalityOperators, ...existenceOperators, ...textOperators, ...numberOperators], {
    description: `Of texts only: ${textOperators.join(", ")}. Of numbers only: ${numberOperators.join(", ")}.`,
  }),
  value: Type.Optional(
    Type.Unsafe<string | number | null>({
      type: ["string", "number", "null"],
      minLength: 1,
      maxLength: filterBounds.textCharacters,
      description: "A text or a number, as the field is; none, or null, with exists and not_exists.",
    }),
  ),
});

const filterRules = Type.Object({
  enabled: flag("False: the rules are kept but not applied. Default true."),
  groups: Type.Array(
    Type.Object({
      logic: Type.Optional(
        stringEnum(["and", "or"], { description: "Whether all rules or one must hold. Default and." }),
      ),
      rules: Type.Array(rule, { minItems: 1, maxItems: filterBounds.rules }),
    }),
    { maxItems: filterBounds.groups, description: "Every group must hold." },
  ),
});

/** In one type, so that faults are reported in one sentence. */
function orNull<S extends TSchema>(schema: S, type: "array" | "object", description: string) {
  return Type.Optional(Type.Unsafe<Static<S> | null>({ ...schema, type: [type, "null"], description }));
}

const fields = {
  enabled: flag("Whether anything is delivered. Default true."),
  privacy_mode: flag("Leaves out end user, session id and trace. Default false."),
  sampling_rate: Type.Optional(
    Type.Number({
      minimum: minSamplingRate,
      maximum: 1,
      description: "The share of sessions to deliver, each wholly or not at all. Default 1.",
    }),
  ),
  api_key_hashes: orNull(
    Type.Array(Type.String({ pattern: "^[0-9a-fA-F]{64}$" }), { minItems: 1, maxItems: maxKeyHashes }),
    "array",
    "Only events of these keys, by SHA-256; null: of all.",
  ),
  filter_rules: orNull(filterRules, "object", "Only events that match; null: all."),
  broadcast_generation_cost: flag("Whether cost is told. Default false."),
  broadcast_generation_identity: flag("Whether key name, member and end user are told. Default false."),
  broadcast_generation_request_context: flag("Whether session id and trace are told. Default false."),
};

/** The body of POST /observability/destinations. Unknown fields are ignored; null counts as absent. */
export const createDestinationBodySchema = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 64, description: "Such as `webhook`." }),
    name,
    config,
    ...fields,
  },
  bodyRules,
);

/** The body of PATCH /observability/destinations/{id}: what is absent stays as it is. */
export const updateDestinationBodySchema = Type.Object(
  {
    name: Type.Optional(name),
    config: Type.Optional(config),
    ...fields,
  },
  bodyRules,
);

const checkCreate = compileCheck(createDestinationBodySchema, patternWords);
const checkUpdate = compileCheck(updateDestinationBodySchema, patternWords);
/** Members whose null says something; elsewhere null counts as absent. */
const clearable: readonly string[] = ["api_key_hashes", "filter_rules"];

/** The request that a body of POST /observability/destinations stands for. Throws invalid_body with its issues. */
export function toCreateDestinationRequest(body: JsonObject): CreateDestinationRequest {
  const { type, ...given } = checkCreate(withoutNulls(body));
  return create(CreateDestinationRequestSchema, { type, ...toProtoFields(given) });
}

/** The change that a body of PATCH stands for, of a destination not named yet. Throws invalid_body. */
export function toUpdateDestinationRequest(body: JsonObject): UpdateDestinationRequest {
  const nulls = clearable.filter((member) => body[member] === null).map((member) => [member, null]);
  const given = checkUpdate({ ...withoutNulls(body), ...Object.fromEntries(nulls) });
  return create(UpdateDestinationRequestSchema, {
    ...toProtoFields(given),
    clearApiKeyHashes: given.api_key_hashes === null,
    clearFilterRules: given.filter_rules === null,
  });
}

/** What is set, under the names of both requests. */
function toProtoFields(given: Static<typeof updateDestinationBodySchema>) {
  const { config: settings, api_key_hashes: hashes, filter_rules: rules } = given;
  const issues = freeObjectIssues("config", settings, maxConfigBytes);
  if (issues.length > 0) throw DomainError.invalid(issues);
  const values = {
    name: given.name,
    config: settings as ProtoObject | undefined,
    enabled: given.enabled,
    privacyMode: given.privacy_mode,
    samplingRate: given.sampling_rate,
    apiKeyHashes: hashes == null ? undefined : { values: hashes },
    filterRules: rules == null ? undefined : toProtoFilterRules(rules),
    broadcastGenerationCost: given.broadcast_generation_cost,
    broadcastGenerationIdentity: given.broadcast_generation_identity,
    broadcastGenerationRequestContext: given.broadcast_generation_request_context,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof typeof values]?: Exclude<(typeof values)[K], undefined>;
  };
}

function toProtoFilterRules({ enabled = true, groups }: Static<typeof filterRules>): FilterRules {
  return create(FilterRulesSchema, {
    enabled,
    groups: groups.map(({ logic, rules }) => ({
      logic: logic === undefined ? FilterLogic.UNSPECIFIED : filterLogics[logic],
      rules: rules.map(({ field, operator, value }) => ({ field, operator, ...toProtoValue(value) })),
    })),
  });
}

function toProtoValue(value: Static<typeof rule>["value"]) {
  if (value === undefined || value === null) return {};
  const kind =
    typeof value === "string"
      ? ({ case: "stringValue", value } as const)
      : ({ case: "numberValue", value } as const);
  return { value: create(ValueSchema, { kind }) };
}
