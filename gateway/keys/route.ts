import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { type Key, KeyKind, KeySchema, KeyScope, LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import type { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import { keyPage } from "../../lib/limits/key-limits.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { type BodyLimits, readJsonBody, readOptionalJsonBody } from "../body/request-body.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  deletedAnswer,
  deletedBody,
  documentsOf,
  jsonAnswer,
  pageParameters,
} from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import { readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import {
  currentKeyAnswerSchema,
  keyAnswerSchema,
  keyListSchema,
  newKeyAnswerSchema,
  toCurrentKeyAnswer,
  toKeyBody,
} from "./answer.ts";
import {
  createKeyBodySchema,
  keyWireNames,
  readGraceS,
  rotateKeyBodySchema,
  toCreateKeyRequest,
  toUpdateKeyRequest,
  updateKeyBodySchema,
} from "./body.ts";

const createdMs = Date.UTC(2030, 0, 31, 12);

const exampleKey = create(KeySchema, {
  hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  accountId: "6f1f1c0e-52ad-4b52-9d57-6c1de19f7a7b",
  kind: KeyKind.INFERENCE,
  scopes: [KeyScope.SPEECH, KeyScope.IMAGES],
  name: "Website",
  label: "sk-abc…wxyz",
  createdAt: timestampFromMs(createdMs),
  lastUsedAt: timestampFromMs(createdMs),
  limitNanoUsd: 50_000_000_000n,
  limitRemainingNanoUsd: 49_984_700_000n,
  limitReset: LimitReset.MONTHLY,
  usage: {
    totalNanoUsd: 15_300_000n,
    dailyNanoUsd: 15_300_000n,
    weeklyNanoUsd: 15_300_000n,
    monthlyNanoUsd: 15_300_000n,
  },
});

const example = { data: toKeyBody(exampleKey) };
const newExample = { ...example, key: "sk-the-key-itself-shown-this-once" };

const hashParameter = {
  name: "hash",
  in: "path",
  description: "SHA-256 of the key, 64 hex characters.",
  schema: Type.String({ pattern: "^[0-9a-fA-F]{64}$" }),
} as const;

const documents = documentsOf("Keys", {
  listKeys: {
    summary: "Keys of the account",
    description: "Newest first, 100 a page. Management keys only.",
    parameters: [
      ...pageParameters(keyPage),
      {
        name: "include_disabled",
        in: "query",
        description: "Whether disabled keys are listed too.",
        schema: Type.Boolean({ default: false }),
      },
    ],
    answer: jsonAnswer("The keys.", "KeyList", keyListSchema, { data: [example.data], total_count: 1 }),
  },
  createKey: {
    summary: "Make a key",
    description:
      "The answer shows the key itself, once. 409 when the account has as many keys as it may. Management keys only.",
    body: {
      name: "KeyRequest",
      schema: createKeyBodySchema,
      examples: () => ({
        least: { name: "Website" },
        limited: {
          name: "Website",
          scopes: ["speech"],
          limit: 50,
          limit_reset: "monthly",
          expires_at: "2030-12-31T23:59:59Z",
          rate_limit_per_minute: 60,
        },
        management: { name: "Back office", kind: "management" },
      }),
    },
    answer: jsonAnswer("It is made.", "NewKey", newKeyAnswerSchema, newExample, 201),
    errors: [409],
  },
  getKey: {
    summary: "One key",
    description: "Management keys only.",
    parameters: [hashParameter],
    answer: jsonAnswer("The key.", "Key", keyAnswerSchema, example),
  },
  updateKey: {
    summary: "Change a key",
    description:
      "What is absent stays as it is; null takes away a limit, its reset, an expiry or a rate limit. Holds everywhere within 5 s. 409 for what would end the account's last management key that works. Management keys only.",
    parameters: [hashParameter],
    body: {
      name: "KeyChange",
      schema: updateKeyBodySchema,
      examples: () => ({ disable: { disabled: true }, unlimited: { limit: null, limit_reset: null } }),
    },
    answer: jsonAnswer("The key as it is now.", "Key", keyAnswerSchema, example),
    errors: [409],
  },
  deleteKey: {
    summary: "Delete a key",
    description:
      "It is refused everywhere within 5 s; what it did stays in the activity. 409 for the account's last management key that works. Management keys only.",
    parameters: [hashParameter],
    answer: deletedAnswer("It is gone."),
    errors: [409],
  },
  rotateKey: {
    summary: "Replace a key",
    description:
      "Makes a new key in the place of an old one, of the same kind, scopes, name, limit, expiry and rate limit; what both spend counts together. The old one works for `grace_s` seconds more; without a body, or without that, it is refused within 5 s. A key that is disabled, has expired or was replaced before can't be: 400. Management keys only.",
    parameters: [hashParameter],
    body: {
      name: "KeyRotation",
      schema: rotateKeyBodySchema,
      examples: () => ({ atOnce: {}, graceful: { grace_s: 86_400 } }),
      isOptional: true,
    },
    answer: jsonAnswer("The new key.", "NewKey", newKeyAnswerSchema, newExample, 201),
    errors: [409],
  },
  getCurrentKey: {
    summary: "The key that asks",
    description: "For any key.",
    answer: jsonAnswer(
      "The key.",
      "CurrentKey",
      currentKeyAnswerSchema,
      toCurrentKeyAnswer(exampleKey, false, createdMs),
    ),
  },
});

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
      document: documents.listKeys,
      request: readPage,
      call: keys.listKeys,
      answer: (page) => ({ data: page.keys.map(toKeyBody), total_count: Number(page.totalCount) }),
    }),
    serviceRoute({
      method: "POST",
      path: collectionPath,
      document: documents.createKey,
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
      document: documents.getKey,
      request: namedKey,
      call: keys.getKey,
      answer: keyAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: keyPath,
      document: documents.updateKey,
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
      document: documents.deleteKey,
      request: namedKey,
      call: keys.deleteKey,
      answer: () => deletedBody,
    }),
    serviceRoute({
      method: "POST",
      path: `${keyPath}/rotate`,
      document: documents.rotateKey,
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
    document: documents.getCurrentKey,
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

const readPage = (exchange: Exchange) =>
  readQuery(exchange, (query) => ({
    ...query.page(),
    includeDisabled: query.flag("include_disabled"),
  }));

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
