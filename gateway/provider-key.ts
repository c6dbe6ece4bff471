import { create } from "@bufbuild/protobuf";
import Type, { type Static } from "typebox";
import {
  type CreateProviderKeyRequest,
  CreateProviderKeyRequestSchema,
  type ProviderKey,
} from "../gen/media/account/v1/provider_key_pb.ts";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import { compileCheck, type JsonObject, withoutNulls } from "./json-body.ts";
import { nullableString } from "./nullable-schema.ts";
import type { WireNames } from "./service-error.ts";
import { formatInstant } from "./utc-instant.ts";

const maxSlugLength = 256;
const maxSecretLength = 4096;
const maxNameLength = 256;

/** What the service calls otherwise. */
export const providerKeyWireNames: WireNames = { provider_slug: "provider", secret: "key" };

/** The body of POST /byok. Unknown fields are ignored; null counts as absent. */
export const providerKeyBodySchema = Type.Object({
  provider: Type.String({ minLength: 1, maxLength: maxSlugLength, description: "The provider's slug." }),
  key: Type.String({
    minLength: 1,
    maxLength: maxSecretLength,
    description: "Your key at the provider; kept sealed, never shown again.",
  }),
  name: Type.Optional(nullableString({ maxLength: maxNameLength, description: "A name for people." })),
});

const providerKeySchema = Type.Object({
  id: Type.String({ format: "uuid" }),
  provider: Type.String({ description: "The provider's slug." }),
  label: Type.String({ description: "The key masked." }),
  name: nullableString(),
  disabled: Type.Boolean({ description: "Whether it is left unused." }),
  created_at: Type.String({ format: "date-time" }),
});

/** The answer with one provider key. */
export const providerKeyAnswerSchema = Type.Object({ data: providerKeySchema });

/** The answer of GET /byok. */
export const providerKeyListSchema = Type.Object({
  data: Type.Array(providerKeySchema, { description: "Oldest first; at most one for each provider." }),
});

const check = compileCheck(providerKeyBodySchema);

/** The request that a body of POST /byok stands for. Throws invalid_body with its issues. */
export function toCreateProviderKeyRequest(body: JsonObject): CreateProviderKeyRequest {
  const { provider, key, name } = check(withoutNulls(body));
  return create(CreateProviderKeyRequestSchema, { providerSlug: provider, secret: key, name: name ?? "" });
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
  };
}
