import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { type ProviderKey, ProviderKeySchema } from "../../gen/media/account/v1/provider_key_pb.ts";
import type { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  deletedAnswer,
  deletedBody,
  documentsOf,
  idParameter,
  jsonAnswer,
  pageParameters,
} from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import { maxInteger, readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { namedId, serviceRoute } from "../http/service-route.ts";
import {
  providerKeyAnswerSchema,
  providerKeyBodySchema,
  providerKeyChangeSchema,
  providerKeyListSchema,
  providerKeyWireNames,
  toCreateProviderKeyRequest,
  toProviderKeyBody,
  toUpdateProviderKeyRequest,
} from "./body.ts";

const example = toProviderKeyBody(
  create(ProviderKeySchema, {
    id: "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10",
    providerSlug: "acme",
    label: "sk-…wxyz",
    name: "Team",
    createdAt: timestampFromMs(Date.UTC(2030, 0, 31, 12)),
    accountId: "6f1f1c0e-52ad-4b52-9d57-6c1de19f7a7b",
  }),
);

const documents = documentsOf("Provider keys", {
  listProviderKeys: {
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
  },
  createProviderKey: {
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
    errors: [409],
  },
  getProviderKey: {
    summary: "One provider key",
    description: "Never the key itself. Management keys only.",
    parameters: [idParameter],
    answer: jsonAnswer("The provider key.", "ProviderKey", providerKeyAnswerSchema, { data: example }),
  },
  updateProviderKey: {
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
  },
  deleteProviderKey: {
    summary: "Forget a provider key",
    description: "No request that begins from now on uses it. Management keys only.",
    parameters: [idParameter],
    answer: deletedAnswer("It is forgotten."),
  },
});

interface ByokDependencies {
  providerKeys: Client<typeof ProviderKeyService>;
  bodyLimits: BodyLimits;
}

const collectionPath = `${apiPath}/byok`;
const itemPath = `${collectionPath}/:id`;

/** GET and POST /api/v1/byok, GET, PATCH and DELETE /api/v1/byok/{id}: the account's own keys at providers. */
export function byokRoutes({ providerKeys, bodyLimits }: ByokDependencies): readonly Route[] {
  return [
    listRoute(providerKeys),
    serviceRoute({
      method: "POST",
      path: collectionPath,
      document: documents.createProviderKey,
      request: async (exchange) => toCreateProviderKeyRequest(await readJsonBody(exchange, bodyLimits)),
      call: providerKeys.createProviderKey,
      wireNames: providerKeyWireNames,
      answer: providerKeyAnswer,
    }),
    serviceRoute({
      method: "GET",
      path: itemPath,
      document: documents.getProviderKey,
      request: namedProviderKey,
      call: providerKeys.getProviderKey,
      answer: providerKeyAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: itemPath,
      document: documents.updateProviderKey,
      request: async (exchange) => ({
        ...toUpdateProviderKeyRequest(await readJsonBody(exchange, bodyLimits)),
        ...namedProviderKey(exchange),
      }),
      call: providerKeys.updateProviderKey,
      wireNames: providerKeyWireNames,
      answer: providerKeyAnswer,
    }),
    serviceRoute({
      method: "DELETE",
      path: itemPath,
      document: documents.deleteProviderKey,
      request: namedProviderKey,
      call: providerKeys.deleteProviderKey,
      answer: () => deletedBody,
    }),
  ];
}

function listRoute(providerKeys: ByokDependencies["providerKeys"]): Route {
  return serviceRoute({
    method: "GET",
    path: collectionPath,
    document: documents.listProviderKeys,
    request: readPage,
    call: async (page, options) => ({ page, ...(await providerKeys.listProviderKeys({}, options)) }),
    answer({ page: { provider, offset, limit }, providerKeys: stored }) {
      const found = stored.filter(({ providerSlug }) => provider === undefined || providerSlug === provider);
      const page = found.slice(offset, limit === undefined ? undefined : offset + limit);
      return { data: page.map(toProviderKeyBody), total_count: found.length };
    },
  });
}

function readPage(exchange: Exchange) {
  return readQuery(exchange, (query) => {
    const page = { provider: query.text("provider"), ...query.page() };
    if (page.limit === 0) query.addIssue("limit", "must be at least 1");
    return page;
  });
}

const providerKeyAnswer = ({ providerKey }: { providerKey?: ProviderKey | undefined }) => ({
  data: toProviderKeyBody(providerKey),
});

const namedProviderKey = (exchange: Exchange) => namedId(exchange, "provider key");
