import Type from "typebox";
import { deletedAnswer, deletedAnswerSchema } from "../docs/deleted-answer.ts";
import { jsonAnswer } from "../docs/json-answer.ts";
import { idParameter, pageParameters } from "../docs/parameters.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import { maxInteger } from "../http/query.ts";
import {
  providerKeyAnswerSchema,
  providerKeyBodySchema,
  providerKeyChangeSchema,
  providerKeyListSchema,
} from "./body.ts";

const example = {
  id: "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10",
  provider: "acme",
  label: "sk-…wxyz",
  name: "Team",
  disabled: false,
  created_at: "2030-01-31T12:00:00.000Z",
  workspace_id: "6f1f1c0e-52ad-4b52-9d57-6c1de19f7a7b",
  sort_order: 0,
  is_fallback: false,
  is_required: false,
  is_byok_only: false,
  allowed_models: null,
  allowed_user_ids: null,
  allowed_api_key_hashes: null,
  declared_zdr: null,
  declared_region: null,
};

/** What the OpenAPI document says of GET /byok. */
export const listProviderKeysDocument: RouteDocument = {
  id: "listProviderKeys",
  tag: "Provider keys",
  summary: "Your own provider keys",
  description: "The account's own keys at providers, never the keys themselves. Management keys only.",
  parameters: [
    {
      name: "provider",
      in: "query",
      description: "Only the key for this provider, by slug.",
      schema: Type.String({ minLength: 1 }),
    },
    ...pageParameters({
      maxOffset: maxInteger,
      limit: { maximum: maxInteger },
      description: "How many to return; all without it.",
    }),
  ],
  answer: jsonAnswer("The provider keys.", "ProviderKeyList", providerKeyListSchema, {
    data: [example],
    total_count: 1,
  }),
  errors: [400, 401, 403, 500],
};

/** What it says of POST /byok. */
export const createProviderKeyDocument: RouteDocument = {
  id: "createProviderKey",
  tag: "Provider keys",
  summary: "Store a provider key",
  description:
    "From now on requests that this provider serves use your key there and cost the platform's fee only. One key for each provider: 409 when there is one. Management keys only.",
  body: {
    name: "ProviderKeyRequest",
    schema: providerKeyBodySchema,
    examples: () => ({
      least: { provider: "acme", key: "your-key-at-the-provider" },
      named: { provider: "acme", key: "your-key-at-the-provider", name: "Team" },
    }),
  },
  answer: jsonAnswer("It is stored.", "ProviderKey", providerKeyAnswerSchema, { data: example }, 201),
  errors: [400, 401, 403, 409, 500],
};

/** What it says of GET /byok/{id}. */
export const getProviderKeyDocument: RouteDocument = {
  id: "getProviderKey",
  tag: "Provider keys",
  summary: "One provider key",
  description: "Never the key itself. Management keys only.",
  parameters: [idParameter],
  answer: jsonAnswer("The provider key.", "ProviderKey", providerKeyAnswerSchema, { data: example }),
  errors: [401, 403, 404, 500],
};

/** What it says of PATCH /byok/{id}. */
export const updateProviderKeyDocument: RouteDocument = {
  id: "updateProviderKey",
  tag: "Provider keys",
  summary: "Change a provider key",
  description:
    "What is absent stays as it is; a `name` of null takes the name away, `key` puts another key in the place of the stored one. Holds within 5 s. Management keys only.",
  parameters: [idParameter],
  body: {
    name: "ProviderKeyChange",
    schema: providerKeyChangeSchema,
    examples: () => ({ disable: { disabled: true }, replace: { key: "your-new-key-at-the-provider" } }),
  },
  answer: jsonAnswer("As it is now.", "ProviderKey", providerKeyAnswerSchema, { data: example }),
  errors: [400, 401, 403, 404, 500],
};

/** What it says of DELETE /byok/{id}. */
export const deleteProviderKeyDocument: RouteDocument = {
  id: "deleteProviderKey",
  tag: "Provider keys",
  summary: "Forget a provider key",
  description: "No request that begins from now on uses it. Management keys only.",
  parameters: [idParameter],
  answer: jsonAnswer("It is forgotten.", "Deleted", deletedAnswerSchema, deletedAnswer),
  errors: [401, 403, 404, 500],
};
