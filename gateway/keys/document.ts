import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import Type from "typebox";
import { KeyKind, KeySchema, KeyScope, LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import { keyPage } from "../../lib/limits/key-limits.ts";
import { deletedAnswer, deletedAnswerSchema } from "../docs/deleted-answer.ts";
import { jsonAnswer } from "../docs/json-answer.ts";
import { pageParameters } from "../docs/parameters.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import {
  currentKeyAnswerSchema,
  keyAnswerSchema,
  keyListSchema,
  newKeyAnswerSchema,
  toCurrentKeyAnswer,
  toKeyBody,
} from "./answer.ts";
import { createKeyBodySchema, rotateKeyBodySchema, updateKeyBodySchema } from "./body.ts";

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

/** What the OpenAPI document says of GET /keys. */
export const listKeysDocument: RouteDocument = {
  id: "listKeys",
  tag: "Keys",
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
  errors: [400, 401, 403, 500],
};

/** What it says of POST /keys. */
export const createKeyDocument: RouteDocument = {
  id: "createKey",
  tag: "Keys",
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
  errors: [400, 401, 403, 409, 500],
};

/** What it says of GET /keys/{hash}. */
export const getKeyDocument: RouteDocument = {
  id: "getKey",
  tag: "Keys",
  summary: "One key",
  description: "Management keys only.",
  parameters: [hashParameter],
  answer: jsonAnswer("The key.", "Key", keyAnswerSchema, example),
  errors: [401, 403, 404, 500],
};

/** What it says of PATCH /keys/{hash}. */
export const updateKeyDocument: RouteDocument = {
  id: "updateKey",
  tag: "Keys",
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
  errors: [400, 401, 403, 404, 409, 500],
};

/** What it says of DELETE /keys/{hash}. */
export const deleteKeyDocument: RouteDocument = {
  id: "deleteKey",
  tag: "Keys",
  summary: "Delete a key",
  description:
    "It is refused everywhere within 5 s; what it did stays in the activity. 409 for the account's last management key that works. Management keys only.",
  parameters: [hashParameter],
  answer: jsonAnswer("It is gone.", "Deleted", deletedAnswerSchema, deletedAnswer),
  errors: [401, 403, 404, 409, 500],
};

/** What it says of POST /keys/{hash}/rotate. */
export const rotateKeyDocument: RouteDocument = {
  id: "rotateKey",
  tag: "Keys",
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
  errors: [400, 401, 403, 404, 409, 500],
};

/** What it says of GET /key. */
export const currentKeyDocument: RouteDocument = {
  id: "getCurrentKey",
  tag: "Keys",
  summary: "The key that asks",
  description: "For any key.",
  answer: jsonAnswer(
    "The key.",
    "CurrentKey",
    currentKeyAnswerSchema,
    toCurrentKeyAnswer(exampleKey, false, createdMs),
  ),
  errors: [401, 500],
};
