import { readdirSync } from "node:fs";
import type { Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SpeechFlow, speak, speakDirectly, startSpeechFlow } from "../support/processes/speech-flow.ts";
import { stockTransport, type TransportName } from "../support/services/speech-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { Fate, ReceivedRequest } from "../upstreams/stand-in/stand-in-server.ts";

const ways = ["REST", "Connect over HTTP/1.1", "Connect over HTTP/2", "gRPC"] as const;
type Way = (typeof ways)[number];

/** When a client leaves, and what it asks for so that it can. */
const moments = {
  "before the first byte": "Nothing comes.",
  "in the middle of a stream": "[[audio=65536 stall=8192]]",
  "while it takes nothing": "[[audio=134217728 chunk=65536]]",
} as const;
type Moment = keyof typeof moments;

const cancels = 100;
const atOnce = 10;
/** Connections that pools keep, at most as many as there were calls at a time. */
const keptHandles = 2 * atOnce;
const transports = new Map<TransportName, Transport>();
const gates = new Map<string, PromiseWithResolvers<void>>();

let flow: SpeechFlow;
let calls = 0;

beforeAll(async () => {
  flow = await startSpeechFlow({
    // Nothing but its caller's leaving ends what these tests leave.
    env: { SPEECH_IDLE_TIMEOUT_MS: "600000", SPEECH_FIRST_BYTE_TIMEOUT_MS: "600000" },
    upstream: {
      behave: ({ input }) =>
        input.startsWith(moments["before the first byte"])
          ? { kind: "audio", beforeHeaders: () => untilLeft(input), stallAfterBytes: 8192 }
          : undefined,
    },
  });
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

describe.for(ways)("a client that leaves over %s", (way) => {
  test.for(Object.keys(moments) as Moment[])(
    "%s ends the upstream's work once it is paid for",
    async (moment) => {
      expect(await leave(way, moment)).toBe("closed_by_client");
    },
  );
});

test("100 clients that left leave nothing behind", async () => {
  for (const way of ways) await listen(way, "Warm.");
  const before = handlesOf();
  const plan = Array.from({ length: cancels }, (_, index): [Way, Moment] => [
    ways[index % ways.length] ?? "REST",
    index % 8 < 4 ? "before the first byte" : "in the middle of a stream",
  ]);
  const fates: Fate[] = [];
  while (plan.length > 0) {
    const batch = plan.splice(0, atOnce).map(([way, moment]) => leave(way, moment));
    fates.push(...(await Promise.all(batch)));
  }
  expect(fates).toEqual(Array.from({ length: cancels }, () => "closed_by_client"));
  for (const way of ways) await listen(way, "Afterwards.");
  expect(flow.upstream.requests.filter(({ fate }) => fate === "open")).toEqual([]);
  for (const [process, count] of Object.entries(before)) {
    await waitUntil(() => (handlesOf()[process] ?? 0) <= count + keptHandles);
  }
});

/** Lets the upstream begin its answer once the caller of this input has left. */
function untilLeft(input: string): Promise<void> {
  const gate = Promise.withResolvers<void>();
  gates.set(input, gate);
  return gate.promise;
}

/** Asks, leaves at that moment, and resolves with how the upstream's request ended. */
async function leave(way: Way, moment: Moment): Promise<Fate> {
  calls += 1;
  const input = `${moments[moment]} Call ${calls}.`;
  const leaving = new AbortController();
  const begun = Promise.withResolvers<void>();
  const call = listen(way, input, leaving.signal, () => {
    begun.resolve();
    return moment === "while it takes nothing" ? new Promise(() => undefined) : undefined;
  });
  const failed = call.then(
    () => "whole",
    () => "failed",
  );
  const received = await waitUntil(() => flow.upstream.requests.find(({ text }) => text.includes(input)));
  if (moment !== "before the first byte") await begun.promise;
  if (moment === "while it takes nothing") await waitUntilStuck(received);
  leaving.abort();
  if (moment === "before the first byte") {
    expect(await failed).toBe("failed");
    expect(received.fate).toBe("open");
    gates.get(input)?.resolve();
  }
  if (moment !== "while it takes nothing") expect(await failed).toBe("failed");
  return received.ended;
}

/** Resolves once the upstream can send no more. */
async function waitUntilStuck(request: ReceivedRequest): Promise<void> {
  let lastBytes = 0;
  await waitUntil(
    () => {
      const isStuck = lastBytes > 0 && request.sentBytes === lastBytes;
      lastBytes = request.sentBytes;
      return isStuck;
    },
    { intervalMs: 200 },
  );
}

/** Takes a whole answer; `onAudio` is called with each piece and waited for. */
async function listen(way: Way, input: string, signal?: AbortSignal, onAudio?: () => Promise<void> | void) {
  const { stack } = flow;
  const options = signal === undefined ? {} : { signal };
  if (way !== "REST") {
    const authorization = `Bearer ${stack.inferenceKey}`;
    const transport = transports.get(way) ?? stockTransport(way, stack.urls.speech);
    transports.set(way, transport);
    const { whole } = await speakDirectly(stack, input, authorization, {
      ...options,
      transport,
      ...(onAudio === undefined ? {} : { onAudio }),
    });
    expect(whole).toBe(true);
    return;
  }
  const answer = await speak(stack, input, options);
  expect(answer.status).toBe(200);
  for await (const _piece of answer.body ?? []) await onAudio?.();
}

/** How many files and sockets each process has open; none are counted where there is no /proc. */
function handlesOf(): Record<string, number> {
  if (process.platform !== "linux") return {};
  const { processes } = flow.stack;
  const count = (name: string) => readdirSync(`/proc/${processes.child(name).pid}/fd`).length;
  return { gateway: count("gateway"), speech: count("speech") };
}
