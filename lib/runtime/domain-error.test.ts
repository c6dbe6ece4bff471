import { readFileSync } from "node:fs";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason, ErrorReasonSchema } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { type SpeechServer, startSpeechServer } from "../../test/support/services/speech-server.ts";
import { createRemoteTransport, createRpcClient } from "../rpc/client.ts";
import { DomainError } from "./domain-error.ts";
import { codeOfReason, reasonOfCode, wordOfReason } from "./error-code.ts";

const reasons = ErrorReasonSchema.values.filter(({ number }) => number !== ErrorReason.UNSPECIFIED);

describe("between processes", () => {
  let thrown: unknown;
  const lines: string[] = [];
  let server: SpeechServer;
  beforeAll(async () => {
    server = await startSpeechServer({
      log: pino({ level: "error" }, { write: (line: string) => lines.push(line) }),
      handlers: { listSpeechModels: () => Promise.reject(thrown) },
    });
  });
  afterAll(() => server.drain({ delayMs: 0, timeoutMs: 0 }));

  const callFailing = async (failure: unknown) => {
    thrown = failure;
    lines.length = 0;
    const client = createRpcClient(SpeechService, createRemoteTransport({ baseUrl: server.baseUrl }));
    return client.listSpeechModels({}).catch((caught: unknown) => caught);
  };
  const callRaw = async (failure: unknown) => {
    thrown = failure;
    const transport = createConnectTransport({ baseUrl: server.baseUrl, httpVersion: "1.1" });
    return ConnectError.from(
      await createClient(SpeechService, transport)
        .listSpeechModels({})
        .catch((error) => error),
    );
  };

  test.for(reasons)("$localName keeps its reason and what it carries", async ({ number }) => {
    const reason = number as ErrorReason;
    const attempt = { providerName: "Acme", endpointId: "e-1", providerStatus: 503, reason };
    const failure = new DomainError(reason, "a sentence for the caller", {
      cause: new Error("upstream said so"),
      issues: [{ path: "input", message: "must not be empty" }],
      attempts: [attempt],
      retryAfterMs: 1234.5,
      generationId: "gen-1",
    });
    const caught = (await callFailing(failure)) as DomainError;
    expect(caught).toBeInstanceOf(DomainError);
    expect(caught.reason).toBe(reason);
    expect((await callRaw(failure)).code).toBe(codeOfReason(reason));
    if (reason === ErrorReason.INTERNAL) return;
    expect(caught.generationId).toBe("gen-1");
    expect(caught.retryAfterMs).toBe(1235);
    if (reason === ErrorReason.SERVICE_UNAVAILABLE) return;
    expect(caught.message).toBe("a sentence for the caller");
    expect(caught.issues).toMatchObject([{ path: "input", message: "must not be empty" }]);
    expect(caught.attempts).toMatchObject([attempt]);
  });

  test.for([
    ["a bug", new TypeError("secret text of a bug")],
    ["a value that is no error", "secret text"],
    ["an internal error of another process", new ConnectError("secret text from elsewhere", Code.Internal)],
    ["an error without a code", new ConnectError("secret text from elsewhere", Code.Unknown)],
  ] as const)("%s leaves as internal without a word about it, and is logged", async ([, failure]) => {
    const seen = await callRaw(failure);
    expect([seen.code, seen.rawMessage]).toEqual([Code.Internal, "internal error"]);
    expect(JSON.stringify([seen.details, [...seen.metadata]])).not.toContain("secret");
    expect(lines.join("")).toContain("handler failed");
    expect(DomainError.from(seen).reason).toBe(ErrorReason.INTERNAL);
  });

  test("the cause stays in the process", async () => {
    const failure = new DomainError(ErrorReason.PROVIDER_FAILED, "failed", {
      cause: new Error("secret cause"),
    });
    const seen = await callRaw(failure);
    expect(JSON.stringify([seen.message, seen.details, [...seen.metadata]])).not.toContain("secret");
  });
});

describe("a domain error", () => {
  test("of an invalid request names its first issue and at most 20", () => {
    const issues = Array.from({ length: 30 }, (_, index) => ({
      path: `list.${index}`,
      message: "must be a number",
    }));
    const error = DomainError.invalid(issues);
    expect(error).toMatchObject({ reason: ErrorReason.INVALID_BODY, message: "list.0: must be a number" });
    expect(error.issues).toHaveLength(20);
    expect(DomainError.invalid([{ path: "", message: "must be an object" }]).message).toBe(
      "body: must be an object",
    );
    expect(DomainError.invalid([]).message).toBe("invalid request");
  });

  test("made from another value keeps it as cause and itself as it is", () => {
    const bug = new Error("x");
    expect(DomainError.from(bug)).toMatchObject({
      reason: ErrorReason.INTERNAL,
      message: "internal error",
      cause: bug,
    });
    const error = new DomainError(ErrorReason.RATE_LIMITED, "slow down", { retryAfterMs: 5 });
    expect(DomainError.from(error)).toBe(error);
    const named = error.withGenerationId("gen-2");
    expect(named).toMatchObject({ reason: ErrorReason.RATE_LIMITED, generationId: "gen-2", retryAfterMs: 5 });
  });
});

describe("codes and words", () => {
  test("every reason travels with the code that its comment in the proto begins with", () => {
    const proto = readFileSync(
      new URL("../../proto/media/error/v1/error_reason.proto", import.meta.url),
      "utf8",
    );
    const blocks = [...proto.matchAll(/((?: {2}\/\/.*\n)+) {2}ERROR_REASON_(\w+) = \d+;/g)];
    expect(blocks).toHaveLength(ErrorReasonSchema.values.length);
    for (const [, comment = "", name] of blocks) {
      const reason = ErrorReasonSchema.values.find(({ localName }) => localName === name)?.number;
      const documented = /^ *\/\/ (\w+):/.exec(comment)?.[1];
      expect(codeToString(codeOfReason(reason as ErrorReason)), name).toBe(documented);
    }
    expect(codeOfReason(999 as ErrorReason)).toBe(Code.Internal);
  });

  test("a code without our detail stands for a reason that travels with it, or for what it means on the wire", () => {
    const onTheWire = new Map([
      [Code.Aborted, ErrorReason.SERVICE_UNAVAILABLE],
      [Code.ResourceExhausted, ErrorReason.BODY_TOO_LARGE],
    ]);
    for (const code of Object.values(Code).filter((value) => typeof value === "number")) {
      const reason = reasonOfCode(code);
      const travelsWithIt = reason === ErrorReason.INTERNAL || codeOfReason(reason) === code;
      expect(travelsWithIt || onTheWire.get(code) === reason, Code[code]).toBe(true);
    }
  });

  test("a reason is written as in the REST interface", () => {
    expect(wordOfReason(ErrorReason.KEY_MISSING)).toBe("key_missing");
    expect(new Set(reasons.map(({ number }) => wordOfReason(number as ErrorReason))).size).toBe(
      reasons.length,
    );
    expect(wordOfReason(999 as ErrorReason)).toBe("internal");
  });
});
