import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import type { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import { sendJson } from "../answer.ts";
import { deletedAnswer, deletedAnswerSchema } from "../deleted-answer.ts";
import { jsonAnswer } from "../json-answer.ts";
import { apiPath } from "../openapi.ts";
import {
  providerKeyAnswerSchema,
  providerKeyBodySchema,
  providerKeyListSchema,
  providerKeyWireNames,
  toCreateProviderKeyRequest,
  toProviderKeyBody,
} from "../provider-key.ts";
import { type BodyLimits, readJsonBody } from "../request-body.ts";
import type { Route } from "../route.ts";
import type { RouteDocument } from "../route-document.ts";
import { callService } from "../service-call.ts";

/** What the routes of provider keys need. */
export interface ByokDependencies {
  providerKeys: Client<typeof ProviderKeyService>;
  bodyLimits: BodyLimits;
}

const example = {
  id: "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10",
  provider: "acme",
  label: "sk-…wxyz",
  name: "Team",
  disabled: false,
  created_at: "2030-01-31T12:00:00.000Z",
};

const listDocument: RouteDocument = {
  id: "listProviderKeys",
  tag: "Provider keys",
  summary: "Your own provider keys",
  description: "The account's own keys at providers, never the keys themselves. Management keys only.",
  answer: jsonAnswer("The provider keys.", "ProviderKeyList", providerKeyListSchema, { data: [example] }),
  errors: [401, 403, 500],
};

const createDocument: RouteDocument = {
  id: "createProviderKey",
  tag: "Provider keys",
  summary: "Store a provider key",
  description:
    "From now on requests that this provider serves use your key there and cost the platform's fee only. One key for each provider: 409 when there is one. Management keys only.",
  body: {
    name: "ProviderKeyRequest",
    schema: providerKeyBodySchema,
    examples: {
      least: { provider: "acme", key: "your-key-at-the-provider" },
      named: { provider: "acme", key: "your-key-at-the-provider", name: "Team" },
    },
  },
  answer: jsonAnswer("It is stored.", "ProviderKey", providerKeyAnswerSchema, { data: example }, 201),
  errors: [400, 401, 403, 409, 500],
};

const deleteDocument: RouteDocument = {
  id: "deleteProviderKey",
  tag: "Provider keys",
  summary: "Forget a provider key",
  description: "No request that begins from now on uses it. Management keys only.",
  parameters: [{ name: "id", in: "path", description: "Its id.", schema: Type.String({ format: "uuid" }) }],
  answer: jsonAnswer("It is forgotten.", "Deleted", deletedAnswerSchema, deletedAnswer),
  errors: [401, 403, 404, 500],
};

/** GET and POST /api/v1/byok, DELETE /api/v1/byok/{id}: the account's own keys at providers. */
export function byokRoutes({ providerKeys, bodyLimits }: ByokDependencies): readonly Route[] {
  const route = { operation: "management", access: "management" } as const;
  return [
    {
      ...route,
      method: "GET",
      path: `${apiPath}/byok`,
      document: listDocument,
      async handle(exchange) {
        const { providerKeys: stored } = await callService(exchange, (options) =>
          providerKeys.listProviderKeys({}, options),
        );
        await sendJson(exchange, 200, { data: stored.map(toProviderKeyBody) });
      },
    },
    {
      ...route,
      method: "POST",
      path: `${apiPath}/byok`,
      document: createDocument,
      async handle(exchange) {
        const request = toCreateProviderKeyRequest(await readJsonBody(exchange, bodyLimits));
        const { providerKey } = await callService(
          exchange,
          (options) => providerKeys.createProviderKey(request, options),
          providerKeyWireNames,
        );
        await sendJson(exchange, 201, { data: toProviderKeyBody(providerKey) });
      },
    },
    {
      ...route,
      method: "DELETE",
      path: `${apiPath}/byok/:id`,
      document: deleteDocument,
      async handle(exchange) {
        const { id = "" } = exchange.parameters;
        if (!isUuid(id)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such provider key");
        await callService(exchange, (options) => providerKeys.deleteProviderKey({ id }, options));
        await sendJson(exchange, 200, deletedAnswer);
      },
    },
  ];
}
