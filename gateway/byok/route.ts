import type { Client } from "@connectrpc/connect";
import type { ProviderKey } from "../../gen/media/account/v1/provider_key_pb.ts";
import type { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import type { Exchange } from "../http/exchange.ts";
import { namedId } from "../http/named-id.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import {
  providerKeyWireNames,
  toCreateProviderKeyRequest,
  toProviderKeyBody,
  toUpdateProviderKeyRequest,
} from "./body.ts";
import {
  createProviderKeyDocument,
  deleteProviderKeyDocument,
  getProviderKeyDocument,
  listProviderKeysDocument,
  updateProviderKeyDocument,
} from "./document.ts";

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
      document: createProviderKeyDocument,
      request: async (exchange) => toCreateProviderKeyRequest(await readJsonBody(exchange, bodyLimits)),
      call: providerKeys.createProviderKey,
      wireNames: providerKeyWireNames,
      answer: providerKeyAnswer,
    }),
    serviceRoute({
      method: "GET",
      path: itemPath,
      document: getProviderKeyDocument,
      request: namedProviderKey,
      call: providerKeys.getProviderKey,
      answer: providerKeyAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: itemPath,
      document: updateProviderKeyDocument,
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
      document: deleteProviderKeyDocument,
      request: namedProviderKey,
      call: providerKeys.deleteProviderKey,
      answer: () => deletedAnswer,
    }),
  ];
}

function listRoute(providerKeys: ByokDependencies["providerKeys"]): Route {
  return serviceRoute({
    method: "GET",
    path: collectionPath,
    document: listProviderKeysDocument,
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
  const query = new QueryReader(exchange);
  const page = { provider: query.text("provider"), ...query.page() };
  if (page.limit === 0) query.addIssue("limit", "must be at least 1");
  query.throwIfAny();
  return page;
}

const providerKeyAnswer = ({ providerKey }: { providerKey?: ProviderKey | undefined }) => ({
  data: toProviderKeyBody(providerKey),
});

const namedProviderKey = (exchange: Exchange) => namedId(exchange, "provider key");
