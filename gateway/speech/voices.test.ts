import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SpeechModelSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import {
  type GatewayServer,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";

const models = [
  create(SpeechModelSchema, {
    id: "acme/voice",
    defaultVoice: "anna",
    voices: [
      {
        id: "anna",
        name: "Anna",
        language: "en-US",
        gender: "female",
        previewUrl: "https://acme.test/anna.mp3",
        aliases: ["alloy", "nova"],
      },
      { id: "bo", gender: "unheard of" },
    ],
  }),
  create(SpeechModelSchema, { id: "acme/anything" }),
  create(SpeechModelSchema, { id: "zenith/voice", voices: [{ id: "zoe" }] }),
];

let gateway: GatewayServer;

beforeAll(async () => {
  gateway = await startGatewayServer({ handlers: { listSpeechModels: async () => ({ models }) } });
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

async function list(query = "", key: string | undefined = testKeys.management) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await fetch(`${gateway.baseUrl}/api/v1/audio/voices${query}`, { headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const anna = {
  id: "anna",
  name: "Anna",
  model: "acme/voice",
  language: "en-US",
  gender: "female",
  preview_url: "https://acme.test/anna.mp3",
  aliases: ["alloy", "nova"],
  is_default: true,
};
const unknown = { language: null, gender: null, preview_url: null, aliases: [], is_default: false };
const bo = { id: "bo", name: "bo", model: "acme/voice", ...unknown };
const zoe = { id: "zoe", name: "zoe", model: "zenith/voice", ...unknown };

describe("GET /audio/voices", () => {
  test("lists the voices of all models, under both names that clients look for", async () => {
    const voices = [anna, bo, zoe];
    expect(await list()).toEqual({ status: 200, body: { object: "list", voices, data: voices } });
  });

  test.for([
    ["acme/voice", [anna, bo]],
    ["acme%2Fvoice", [anna, bo]],
    ["acme/anything", []],
  ] as const)("lists those of %s", async ([model, voices]) => {
    expect((await list(`?model=${model}`, testKeys.speech)).body.voices).toEqual(voices);
  });

  test.for([
    ["an unknown model", "?model=acme/none", 404, "model_unknown"],
    ["an empty one", "?model=", 400, "invalid_body"],
    ["two", "?model=a/b&model=c/d", 400, "invalid_body"],
  ] as const)("refuses %s", async ([, query, status, reason]) => {
    expect(await list(query)).toMatchObject({ status, body: { error: { metadata: { reason } } } });
  });

  test("needs a key", async () => {
    expect((await list("", "sk-nobody")).status).toBe(401);
  });
});
