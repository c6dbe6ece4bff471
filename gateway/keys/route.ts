import type { Client } from "@connectrpc/connect";
import type { Key } from "../../gen/media/account/v1/key_pb.ts";
import type { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { type BodyLimits, readJsonBody, readOptionalJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import type { Exchange } from "../http/exchange.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
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

interface KeysDependencies {
  keys: Client<typeof KeyService>;
  bodyLimits: BodyLimits;
  clock: Clock;
}

const collectionPath = `${apiPath}/keys`;
const keyPath = `${collectionPath}/:hash`;

/** GET and POST /api/v1/keys, all of /api/v1/keys/{hash}, and GET /api/v1/key. */
export function keyRoutes(dependencies: KeysDependencies): readonly Route[] {
  return [...collectionRoutes(dependencies), ...itemRoutes(dependencies), currentRoute(dependencies)];
}

function collectionRoutes({ keys, bodyLimits }: KeysDependencies): readonly Route[] {
  return [
    serviceRoute({
      method: "GET",
      path: collectionPath,
      document: listKeysDocument,
      request: readPage,
      call: keys.listKeys,
      answer: (page) => ({ data: page.keys.map(toKeyBody), total_count: Number(page.totalCount) }),
    }),
    serviceRoute({
      method: "POST",
      path: collectionPath,
      document: createKeyDocument,
      request: async (exchange) => toCreateKeyRequest(await readJsonBody(exchange, bodyLimits)),
      call: keys.createKey,
      wireNames: keyWireNames,
      ...newKeyAnswer,
    }),
  ];
}

function itemRoutes({ keys, bodyLimits }: KeysDependencies): readonly Route[] {
  return [
    serviceRoute({
      method: "GET",
      path: keyPath,
      document: getKeyDocument,
      request: namedKey,
      call: keys.getKey,
      answer: keyAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: keyPath,
      document: updateKeyDocument,
      request: async (exchange) => ({
        ...toUpdateKeyRequest(await readJsonBody(exchange, bodyLimits)),
        ...namedKey(exchange),
      }),
      call: keys.updateKey,
      wireNames: keyWireNames,
      answer: keyAnswer,
    }),
    serviceRoute({
      method: "DELETE",
      path: keyPath,
      document: deleteKeyDocument,
      request: namedKey,
      call: keys.deleteKey,
      answer: () => deletedAnswer,
    }),
    serviceRoute({
      method: "POST",
      path: `${keyPath}/rotate`,
      document: rotateKeyDocument,
      request: async (exchange) => ({
        graceS: readGraceS(await readOptionalJsonBody(exchange, bodyLimits)),
        ...namedKey(exchange),
      }),
      call: keys.rotateKey,
      ...newKeyAnswer,
    }),
  ];
}

function currentRoute({ keys, clock }: KeysDependencies): Route {
  const route = serviceRoute({
    method: "GET",
    path: `${apiPath}/key`,
    access: "any",
    document: currentKeyDocument,
    request: () => ({}),
    call: keys.getCurrentKey,
    answer: ({ key }, { principal }) =>
      toCurrentKeyAnswer(key, principal?.organization === true, clock.nowMs()),
  });
  return { ...route, handle: (exchange) => route.handle(exchange).catch(refuseDeleted) };
}

const keyAnswer = ({ key }: { key?: Key | undefined }) => ({ data: toKeyBody(key) });

/** Of an answer that shows a key itself. */
const newKeyAnswer = {
  answer: (reply: { key?: Key | undefined; secret: string }) => ({ ...keyAnswer(reply), key: reply.secret }),
  headers: { "cache-control": "no-store" },
};

function readPage(exchange: Exchange) {
  const query = new QueryReader(exchange);
  const request = { ...query.page(), includeDisabled: query.flag("include_disabled") };
  query.throwIfAny();
  return request;
}

/** A key that was deleted after it was let in is no missing record but a bad key. */
function refuseDeleted(thrown: unknown): never {
  const { reason } = DomainError.from(thrown);
  if (reason !== ErrorReason.RECORD_UNKNOWN) throw thrown;
  throw new DomainError(ErrorReason.KEY_UNKNOWN, "the key was deleted", { cause: thrown });
}

/** The key that the path names. Throws record_unknown for what is no hash. */
function namedKey({ parameters }: Exchange): { hash: string } {
  const hash = parameters.hash?.toLowerCase() ?? "";
  if (!isKeyHash(hash)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such key");
  return { hash };
}
