import type { Client } from "@connectrpc/connect";
import type { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { BodyLimits } from "../body/body-arrival.ts";
import { readJsonBody, readOptionalJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import { sendJson } from "../http/answer.ts";
import type { Exchange } from "../http/exchange.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { callService } from "../http/service-call.ts";
import { toCurrentKeyAnswer, toKeyBody } from "./answer.ts";
import { keyWireNames, readGraceS, toCreateKeyRequest, toUpdateKeyRequest } from "./body.ts";
import {
  createKeyDocument,
  currentKeyDocument,
  deleteKeyDocument,
  getKeyDocument,
  listKeysDocument,
  rotateKeyDocument,
  updateKeyDocument,
} from "./document.ts";

/** What the routes of keys need. */
export interface KeysDependencies {
  keys: Client<typeof KeyService>;
  bodyLimits: BodyLimits;
  clock: Clock;
}

const collectionPath = `${apiPath}/keys`;
const keyPath = `${collectionPath}/:hash`;
const management = { operation: "management", access: "management" } as const;
/** Of an answer that shows a key itself. */
const secretHeaders = { "cache-control": "no-store" };

/** GET and POST /api/v1/keys, all of /api/v1/keys/{hash}, and GET /api/v1/key. */
export function keyRoutes(dependencies: KeysDependencies): readonly Route[] {
  return [
    listRoute(dependencies),
    createRoute(dependencies),
    getRoute(dependencies),
    updateRoute(dependencies),
    deleteRoute(dependencies),
    rotateRoute(dependencies),
    currentRoute(dependencies),
  ];
}

function listRoute({ keys }: KeysDependencies): Route {
  return {
    ...management,
    method: "GET",
    path: collectionPath,
    document: listKeysDocument,
    async handle(exchange) {
      const request = readPage(exchange);
      const page = await callService(exchange, (options) => keys.listKeys(request, options));
      const data = page.keys.map(toKeyBody);
      await sendJson(exchange, 200, { data, total_count: Number(page.totalCount) });
    },
  };
}

function readPage(exchange: Exchange) {
  const query = new QueryReader(exchange);
  const limit = query.integer("limit");
  const offset = query.integer("offset") ?? 0;
  const includeDisabled = query.flag("include_disabled");
  query.throwIfAny();
  return { offset, includeDisabled, ...(limit === undefined ? {} : { limit }) };
}

function createRoute({ keys, bodyLimits }: KeysDependencies): Route {
  return {
    ...management,
    method: "POST",
    path: collectionPath,
    document: createKeyDocument,
    async handle(exchange) {
      const request = toCreateKeyRequest(await readJsonBody(exchange, bodyLimits));
      const { key, secret } = await callService(
        exchange,
        (options) => keys.createKey(request, options),
        keyWireNames,
      );
      await sendJson(exchange, 201, { data: toKeyBody(key), key: secret }, secretHeaders);
    },
  };
}

function getRoute({ keys }: KeysDependencies): Route {
  return {
    ...management,
    method: "GET",
    path: keyPath,
    document: getKeyDocument,
    async handle(exchange) {
      const hash = knownHash(exchange);
      const { key } = await callService(exchange, (options) => keys.getKey({ hash }, options));
      await sendJson(exchange, 200, { data: toKeyBody(key) });
    },
  };
}

function updateRoute({ keys, bodyLimits }: KeysDependencies): Route {
  return {
    ...management,
    method: "PATCH",
    path: keyPath,
    document: updateKeyDocument,
    async handle(exchange) {
      const change = toUpdateKeyRequest(await readJsonBody(exchange, bodyLimits));
      const request = { ...change, hash: knownHash(exchange) };
      const { key } = await callService(
        exchange,
        (options) => keys.updateKey(request, options),
        keyWireNames,
      );
      await sendJson(exchange, 200, { data: toKeyBody(key) });
    },
  };
}

function deleteRoute({ keys }: KeysDependencies): Route {
  return {
    ...management,
    method: "DELETE",
    path: keyPath,
    document: deleteKeyDocument,
    async handle(exchange) {
      const hash = knownHash(exchange);
      await callService(exchange, (options) => keys.deleteKey({ hash }, options));
      await sendJson(exchange, 200, deletedAnswer);
    },
  };
}

function rotateRoute({ keys, bodyLimits }: KeysDependencies): Route {
  return {
    ...management,
    method: "POST",
    path: `${keyPath}/rotate`,
    document: rotateKeyDocument,
    async handle(exchange) {
      const graceS = readGraceS(await readOptionalJsonBody(exchange, bodyLimits));
      const request = { hash: knownHash(exchange), graceS };
      const { key, secret } = await callService(exchange, (options) => keys.rotateKey(request, options));
      await sendJson(exchange, 201, { data: toKeyBody(key), key: secret }, secretHeaders);
    },
  };
}

function currentRoute({ keys, clock }: KeysDependencies): Route {
  return {
    method: "GET",
    path: `${apiPath}/key`,
    operation: "management",
    access: "any",
    document: currentKeyDocument,
    async handle(exchange) {
      const { key } = await callService(exchange, (options) => keys.getCurrentKey({}, options)).catch(
        refuseDeleted,
      );
      const isOrganization = exchange.principal?.organization === true;
      await sendJson(exchange, 200, toCurrentKeyAnswer(key, isOrganization, clock.nowMs()));
    },
  };
}

/** A key that was deleted after it was let in is no missing record but a bad key. */
function refuseDeleted(thrown: unknown): never {
  const { reason } = DomainError.from(thrown);
  if (reason !== ErrorReason.RECORD_UNKNOWN) throw thrown;
  throw new DomainError(ErrorReason.KEY_UNKNOWN, "the key was deleted", { cause: thrown });
}

/** The hash in the path. Throws record_unknown for what is none. */
function knownHash({ parameters }: Exchange): string {
  const hash = parameters.hash?.toLowerCase() ?? "";
  if (!isKeyHash(hash)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such key");
  return hash;
}
