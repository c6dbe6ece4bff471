import { create } from "@bufbuild/protobuf";
import Type, { type Static } from "typebox";
import { Create } from "typebox/value";
import {
  type CreateProviderKeyRequest,
  CreateProviderKeyRequestSchema,
  type ProviderKey,
  type UpdateProviderKeyRequest,
  UpdateProviderKeyRequestSchema,
} from "../../gen/media/account/v1/provider_key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { providerSecret } from "../../lib/limits/key-limits.ts";
import { maxNameCharacters } from "../../lib/limits/record-name.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { bodyRules, compileCheck, type JsonObject, withoutNulls } from "../body/json-body.ts";
import type { WireNames } from "../http/service-call.ts";
import { nameWords, nullableEnum, nullableString, optionalNamePattern } from "../schema/field-schemas.ts";
import { formatInstant } from "../schema/utc-instant.ts";

const maxSlugLength = 256;

/** What the service calls otherwise. */
export const providerKeyWireNames: WireNames = { provider_slug: "provider", secret: "key" };

const name = nullableString({
  maxLength: maxNameCharacters,
  pattern: optionalNamePattern,
  description: "A name for people; null or empty: none.",
});
const patternWords = { name: nameWords, key: providerSecret.words };
const disabled = Type.Boolean({ description: "Whether it is left unused." });
const key = Type.String({
  minLength: 1,
  maxLength: providerSecret.maxLength,
  pattern: providerSecret.pattern,
  description: "Your key at the provider; kept sealed, never shown again.",
});

const notRestricted = "Who may use a key, and for what, can't be restricted here: always null.";
const one = "There is one key for each provider, tried before the operator's own: always false.";

/** What answers say of every key, as there is no choice; a request may say the same and nothing else. */
const fixedFields = {
  is_fallback: Type.Literal(false, { description: one }),
  is_required: Type.Literal(false, { description: one }),
  is_byok_only: Type.Literal(false, { description: one }),
  allowed_models: Type.Null({ description: notRestricted }),
  allowed_user_ids: Type.Null({ description: notRestricted }),
  allowed_api_key_hashes: Type.Null({ description: notRestricted }),
  declared_zdr: Type.Null({ description: "Requests are not routed by it: always null." }),
  declared_region: Type.Null({ description: "Requests are not routed by it: always null." }),
};

const fixedValues = Create(Type.Object(fixedFields));

const fixedOptions = {
  ...Type.Partial(Type.Object(fixedFields)).properties,
  // `global` is what clients of many regions call none.
  declared_region: Type.Optional(nullableEnum(["global"], { description: "Requests are not routed by it." })),
};

/** The body of POST /byok. Unknown fields are ignored; null counts as absent. */
export const providerKeyBodySchema = Type.Object(
  {
    provider: Type.String({ minLength: 1, maxLength: maxSlugLength, description: "The provider's slug." }),
    key,
    name: Type.Optional(name),
    disabled: Type.Optional(disabled),
    ...fixedOptions,
  },
  bodyRules,
);

/** The body of PATCH /byok/{id}: what is absent stays as it is. */
export const providerKeyChangeSchema = Type.Object(
  {
    key: Type.Optional(key),
    name: Type.Optional(name),
    disabled: Type.Optional(disabled),
    ...fixedOptions,
  },
  bodyRules,
);

const providerKeySchema = Type.Object({
  id: Type.String({ format: "uuid" }),
  provider: Type.String({ description: "The provider's slug." }),
  label: Type.String({ description: "The key masked." }),
  name,
  disabled,
  created_at: Type.String({ format: "date-time" }),
  workspace_id: Type.String({ description: "The account." }),
  sort_order: Type.Literal(0, { description: "There is one key for each provider: always 0." }),
  ...fixedFields,
});

/** The answer with one provider key. */
export const providerKeyAnswerSchema = Type.Object({ data: providerKeySchema });

/** The answer of GET /byok. */
export const providerKeyListSchema = Type.Object({
  data: Type.Array(providerKeySchema, { description: "Oldest first; at most one for each provider." }),
  total_count: Type.Integer({ minimum: 0, description: "How many there are on all pages." }),
});

const checkCreate = compileCheck(providerKeyBodySchema, patternWords);
const checkChange = compileCheck(providerKeyChangeSchema, patternWords);

/** The request that a body of POST /byok stands for. Throws invalid_body with its issues. */
export function toCreateProviderKeyRequest(body: JsonObject): CreateProviderKeyRequest {
  checkFixed(body);
  const { provider, key, name, disabled = false } = checkCreate(withoutNulls(body));
  const request = { providerSlug: provider, secret: key, name: name ?? "", disabled };
  return create(CreateProviderKeyRequestSchema, request);
}

/** The change that a body of PATCH /byok/{id} stands for, of a key not named yet. Throws invalid_body. */
export function toUpdateProviderKeyRequest(body: JsonObject): UpdateProviderKeyRequest {
  checkFixed(body);
  const { key, name, disabled } = checkChange(withoutNulls(body));
  const isUnnamed = body.name === null;
  return create(UpdateProviderKeyRequestSchema, {
    ...(key === undefined ? {} : { secret: key }),
    ...(name == null && !isUnnamed ? {} : { name: name ?? "" }),
    ...(disabled === undefined ? {} : { disabled }),
  });
}

/** A wish that can't be kept is refused: without it the key would be used otherwise than was asked. */
function checkFixed(body: JsonObject): void {
  const issues = Object.entries(fixedValues).flatMap(([path, value]) => {
    const given = body[path];
    if (given === undefined || given === null || given === value) return [];
    if (path === "declared_region" && given === "global") return [];
    return [{ path, message: `can't be set here: leave it out, or ${value}` }];
  });
  if (issues.length > 0) throw DomainError.invalid(issues, ErrorReason.UNSUPPORTED_PARAMETER);
}

/** A provider key as answers show it. Throws `internal` when a service answered without one. */
export function toProviderKeyBody(key: ProviderKey | undefined): Static<typeof providerKeySchema> {
  if (key === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without its provider key");
  return {
    id: key.id,
    provider: key.providerSlug,
    label: key.label,
    name: key.name === "" ? null : key.name,
    disabled: key.disabled,
    created_at: formatInstant(key.createdAt),
    workspace_id: key.accountId,
    sort_order: 0,
    ...fixedValues,
  };
}
