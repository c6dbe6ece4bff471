import type { Client } from "@connectrpc/connect";
import type { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import type { BodyLimits } from "../body/body-arrival.ts";
import { readJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import { sendJson } from "../http/answer.ts";
import type { Exchange } from "../http/exchange.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { callService } from "../http/service-call.ts";
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

/** What the routes of provider keys need. */
export interface ByokDependencies {
  providerKeys: Client<typeof ProviderKeyService>;
  bodyLimits: BodyLimits;
}

const collection = {
  operation: "management",
  access: "management",
  path: `${apiPath}/byok`,
} as const;
const item = { ...collection, path: `${apiPath}/byok/:id` } as const;

/** GET and POST /api/v1/byok, GET, PATCH and DELETE /api/v1/byok/{id}: the account's own keys at providers. */
export function byokRoutes(dependencies: ByokDependencies): readonly Route[] {
  return [
    listRoute(dependencies),
    createRoute(dependencies),
    getRoute(dependencies),
    updateRoute(dependencies),
    deleteRoute(dependencies),
  ];
}

function listRoute({ providerKeys }: ByokDependencies): Route {
  return {
    ...collection,
    method: "GET",
    document: listProviderKeysDocument,
    async handle(exchange) {
      const { provider, offset, limit } = readPage(exchange);
      const { providerKeys: stored } = await callService(exchange, (options) =>
        providerKeys.listProviderKeys({}, options),
      );
      const found = stored.filter(({ providerSlug }) => provider === undefined || providerSlug === provider);
      const page = found.slice(offset, limit === undefined ? undefined : offset + limit);
      await sendJson(exchange, 200, { data: page.map(toProviderKeyBody), total_count: found.length });
    },
  };
}

function readPage(exchange: Exchange) {
  const query = new QueryReader(exchange);
  const page = {
    provider: query.text("provider"),
    offset: query.integer("offset") ?? 0,
    limit: query.integer("limit"),
  };
  if (page.limit === 0) query.addIssue("limit", "must be at least 1");
  query.throwIfAny();
  return page;
}

function createRoute({ providerKeys, bodyLimits }: ByokDependencies): Route {
  return {
    ...collection,
    method: "POST",
    document: createProviderKeyDocument,
    async handle(exchange) {
      const request = toCreateProviderKeyRequest(await readJsonBody(exchange, bodyLimits));
      const { providerKey } = await callService(
        exchange,
        (options) => providerKeys.createProviderKey(request, options),
        providerKeyWireNames,
      );
      await sendJson(exchange, 201, { data: toProviderKeyBody(providerKey) });
    },
  };
}

function getRoute({ providerKeys }: ByokDependencies): Route {
  return {
    ...item,
    method: "GET",
    document: getProviderKeyDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      const { providerKey } = await callService(exchange, (options) =>
        providerKeys.getProviderKey({ id }, options),
      );
      await sendJson(exchange, 200, { data: toProviderKeyBody(providerKey) });
    },
  };
}

function updateRoute({ providerKeys, bodyLimits }: ByokDependencies): Route {
  return {
    ...item,
    method: "PATCH",
    document: updateProviderKeyDocument,
    async handle(exchange) {
      const change = toUpdateProviderKeyRequest(await readJsonBody(exchange, bodyLimits));
      const request = { ...change, id: knownId(exchange) };
      const { providerKey } = await callService(
        exchange,
        (options) => providerKeys.updateProviderKey(request, options),
        providerKeyWireNames,
      );
      await sendJson(exchange, 200, { data: toProviderKeyBody(providerKey) });
    },
  };
}

function deleteRoute({ providerKeys }: ByokDependencies): Route {
  return {
    ...item,
    method: "DELETE",
    document: deleteProviderKeyDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      await callService(exchange, (options) => providerKeys.deleteProviderKey({ id }, options));
      await sendJson(exchange, 200, deletedAnswer);
    },
  };
}

/** The id in the path. Throws record_unknown for what is none. */
function knownId({ parameters: { id = "" } }: Exchange): string {
  if (!isUuid(id)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such provider key");
  return id;
}
