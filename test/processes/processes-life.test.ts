import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import type { KeyFiles } from "../../lib/identity/key-files.ts";
import { createRpcClient } from "../../lib/rpc/client.ts";
import { startChild } from "../support/processes/child.ts";
import { type SpeechFlow, speak, startSpeechFlow } from "../support/processes/speech-flow.ts";
import { errorOf } from "../support/services/gateway-server.ts";
import { stockTransport } from "../support/services/speech-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { AudioBehaviour } from "../upstreams/openai/openai-behaviour.ts";

const chunkBytes = 4096;
const streamBytes = 8 * chunkBytes;

const unavailable = { status: 503, reason: "service_unavailable" };
const unavailableRpc = { reason: ErrorReason.SERVICE_UNAVAILABLE };
const maxKeyAgeMs = 5000;

let flow: SpeechFlow;

beforeAll(async () => {
  flow = await startSpeechFlow();
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

describe("a process that stops", () => {
  test("speech lets running streams end, takes no new ones, and exits 0", async () => {
    const { stack } = flow;
    const streams = await startStreams(4);
    const exited = stack.processes.stop("speech");
    await refusesConnections(stack.urls.speech);
    expect(await errorOf(await speak(stack, "Too late."))).toEqual(unavailable);
    streams.goOn();
    expect(await streams.lengths()).toEqual([streamBytes, streamBytes, streamBytes, streamBytes]);
    expect(await exited).toBe(0);

    expect(await errorOf(await speak(stack, "Away."))).toEqual(unavailable);
    await stack.processes.restart("speech");
    expect((await speak(stack, "Back.")).status).toBe(200);
  });

  test("the gateway lets running streams end, closes their connections, and exits 0", async () => {
    const { stack, upstream } = flow;
    const streams = await startStreams(4);
    const silent = Promise.withResolvers<void>();
    upstream.next({ kind: "audio", totalBytes: streamBytes, beforeHeaders: () => silent.promise });
    const unanswered = speak(stack, "No header yet.");
    await waitUntil(() => upstream.requests.at(-1)?.text.includes("No header yet."));
    const exited = stack.processes.stop("gateway");
    await refusesConnections(stack.restUrl);
    streams.goOn();
    silent.resolve();
    const late = await unanswered;
    expect(late.headers.get("connection")).toBe("close");
    expect((await late.arrayBuffer()).byteLength).toBe(streamBytes);
    expect(await streams.lengths()).toEqual([streamBytes, streamBytes, streamBytes, streamBytes]);
    expect(await exited).toBe(0);
    await stack.processes.restart("gateway");
  });

  test("the gateway answers with Connection: close while it still accepts", async () => {
    const { stack } = flow;
    await stack.processes.stop("gateway");
    await stack.processes.restart("gateway", { DRAIN_DELAY_MS: "600000" });
    const gateway = stack.processes.child("gateway");
    expect((await speak(stack, "Before.")).headers.get("connection")).toBe("keep-alive");
    process.kill(gateway.pid, "SIGTERM");
    await waitUntil(async () => {
      const answer = await speak(stack, "During.");
      return answer.status === 200 && answer.headers.get("connection") === "close";
    });
    await gateway.kill();
    await stack.processes.restart("gateway", { DRAIN_DELAY_MS: "0" });
  });
});

describe("a process that dies", () => {
  test("speech in the middle of streams: each client sees a break, and nothing hangs", async () => {
    const { stack, upstream } = flow;
    const streams = await startStreams(4);
    const requests = upstream.requests.slice(-4);
    await stack.processes.kill("speech");
    expect(await streams.outcomes()).toEqual(["broken", "broken", "broken", "broken"]);
    expect(await Promise.all(requests.map(({ ended }) => ended))).toEqual(Array(4).fill("closed_by_client"));
    expect(await errorOf(await speak(stack, "Away."))).toEqual(unavailable);
    await stack.processes.restart("speech");
    expect((await speak(stack, "Back.")).status).toBe(200);
  });

  test("speech before the first byte: the client gets an error, not a stream", async () => {
    const { stack, upstream } = flow;
    upstream.next({ kind: "audio", beforeHeaders: () => new Promise(() => undefined) });
    const answer = speak(stack, "Waiting.");
    await waitUntil(() => upstream.requests.at(-1)?.text.includes("Waiting."));
    await stack.processes.kill("speech");
    expect(await errorOf(await answer)).toEqual(unavailable);
    await stack.processes.restart("speech");
  });

  test("the gateway in the middle of streams: the upstream is told at once", async () => {
    const { stack, upstream } = flow;
    const streams = await startStreams(4);
    const requests = upstream.requests.slice(-4);
    await stack.processes.kill("gateway");
    expect(await streams.outcomes()).toEqual(["broken", "broken", "broken", "broken"]);
    expect(await Promise.all(requests.map(({ ended }) => ended))).toEqual(Array(4).fill("closed_by_client"));
    await stack.processes.restart("gateway");
    expect((await speak(stack, "Back.")).status).toBe(200);
  });
});

describe("a process whose account service is away", () => {
  test("lets keys that it knows go on for 5 s, answers 503 for others, and needs no restart", async () => {
    const { stack } = flow;
    const direct = createRpcClient(SpeechService, stockTransport("Connect over HTTP/1.1", stack.urls.speech));
    const listDirectly = (key: string) =>
      direct.listSpeechModels({}, { headers: { authorization: `Bearer ${key}` } });
    const list = (key: string) =>
      fetch(`${stack.restUrl}/models`, { headers: { authorization: `Bearer ${key}` } });
    expect((await speak(stack, "Known.")).status).toBe(200);
    await listDirectly(stack.inferenceKey);
    await stack.processes.kill("account");
    const awaySinceMs = performance.now();

    expect((await list(stack.inferenceKey)).status).toBe(200);
    await listDirectly(stack.inferenceKey);
    expect(await errorOf(await speak(stack, "Unknown.", { key: generateApiKey() }))).toEqual(unavailable);
    await expect(listDirectly(generateApiKey())).rejects.toMatchObject(unavailableRpc);

    expect(await errorOf(await speak(stack, "Known, and not to be charged."))).toEqual(unavailable);

    await waitUntil(() => performance.now() - awaySinceMs > maxKeyAgeMs);
    expect(await errorOf(await speak(stack, "No longer known."))).toEqual(unavailable);
    await expect(listDirectly(stack.inferenceKey)).rejects.toMatchObject(unavailableRpc);

    await stack.processes.restart("account");
    expect((await speak(stack, "Known again.")).status).toBe(200);
    await listDirectly(stack.inferenceKey);
    const unknown = await speak(stack, "Unknown.", { key: generateApiKey() });
    expect(await errorOf(unknown)).toEqual({ status: 401, reason: "key_unknown" });
  });
});

describe("a process that can't start says why in one line and exits 1", () => {
  const gateway = "gateway/main.ts";
  const speech = "services/speech/main.ts";
  const account = "services/account/main.ts";
  const missing = "no-such-file.jwk";

  test.for([
    [
      "no key file named",
      speech,
      () => ({ SERVICE_JWKS_FILE: missing }),
      "configuration: SERVICE_KEY_FILE is required",
    ],
    [
      "no key file there",
      speech,
      () => ({ SERVICE_KEY_FILE: missing, SERVICE_JWKS_FILE: missing }),
      "can't be read (ENOENT)",
    ],
    [
      "a key file of another process",
      gateway,
      (keys) => ({ SERVICE_KEY_FILE: keys.keyFile("speech") }),
      "not of gateway",
    ],
    [
      "a key file that is no key",
      gateway,
      (keys) => ({ SERVICE_KEY_FILE: keys.jwksFile }),
      "is no private key",
    ],
    [
      "no key set named",
      speech,
      (keys) => ({ SERVICE_KEY_FILE: keys.keyFile("speech") }),
      "SERVICE_JWKS_FILE is required",
    ],
    ["no key set there", account, () => ({ SERVICE_JWKS_FILE: missing }), "can't be read (ENOENT)"],
    ["a key set that is no JSON", account, () => ({ SERVICE_JWKS_FILE: "README.md" }), "is no JWK set"],
    [
      "a private key in the place of the key set",
      speech,
      (keys) => ({ SERVICE_KEY_FILE: keys.keyFile("speech"), SERVICE_JWKS_FILE: keys.keyFile("speech") }),
      "is no JWK set",
    ],
  ] as const satisfies [string, string, (keys: KeyFiles) => Record<string, string>, string][])(
    "%s",
    async ([, script, env, reason]) => {
      const elsewhere = {
        DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
        KAFKA_BROKERS: "127.0.0.1:1",
        MASTER_KEYS: `k1:${Buffer.alloc(32).toString("base64")}`,
      };
      const child = startChild(script, {
        env: { ...elsewhere, OPENAI_API_KEY: "any", PORT: "0", ...env(flow.stack.keyFiles) },
      });
      expect(await child.exited).toBe(1);
      expect(child.lines).toEqual([expect.stringMatching(/^error: /)]);
      expect(child.lines[0]).toContain(reason);
    },
  );
});

/** Streams of which each client has the headers and the upstream has given the first chunk; the rest waits. */
async function startStreams(count: number) {
  const { stack, upstream } = flow;
  const rest = Promise.withResolvers<void>();
  const behaviour: AudioBehaviour = {
    kind: "audio",
    totalBytes: streamBytes,
    chunkBytes,
    beforeChunk: (index) => (index === 0 ? undefined : rest.promise),
  };
  upstream.next(...Array.from({ length: count }, () => behaviour));
  const answers = await Promise.all(Array.from({ length: count }, () => speak(stack, "Go on and on.")));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return {
    goOn: () => rest.resolve(),
    lengths: () => Promise.all(answers.map(async (answer) => (await answer.arrayBuffer()).byteLength)),
    outcomes: () =>
      Promise.all(
        answers.map((answer) =>
          answer.arrayBuffer().then(
            () => "whole",
            () => "broken",
          ),
        ),
      ),
  };
}

/** Resolves once nobody listens there any more. */
async function refusesConnections(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  await waitUntil(async () => {
    const socket = connect(Number(port), hostname);
    try {
      await once(socket, "connect");
      return false;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code === "ECONNREFUSED";
    } finally {
      socket.destroy();
    }
  });
}
