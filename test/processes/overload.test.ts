import { Agent, request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  flowModel,
  type SpeechFlow,
  speakDirectly,
  startSpeechFlow,
} from "../support/processes/speech-flow.ts";
import { waitUntil } from "../support/wait-until.ts";

const streams = 1000;
const maxInFlight = 100;
const audioBytes = 5 * 4096;
const input = `Hello. [[audio=${audioBytes} chunk=4096 interval=50]]`;

let flow: SpeechFlow;

beforeAll(async () => {
  flow = await startSpeechFlow({
    env: {
      MAX_INFLIGHT_REQUESTS: `${maxInFlight}`,
      MAX_INFLIGHT_PER_KEY: "100000",
      RATE_LIMIT_PER_MINUTE: "100000",
    },
  });
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

/** What a client on a connection of its own got: how many bytes, or what it was refused with. */
function stream(): Promise<string> {
  return new Promise((resolve) => {
    const request = httpRequest(`${flow.stack.restUrl}/audio/speech`, {
      method: "POST",
      agent: new Agent({ keepAlive: false }),
      headers: { "content-type": "application/json", authorization: `Bearer ${flow.stack.inferenceKey}` },
    });
    request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    request.on("response", (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", () => resolve("cut"));
      answer.on("end", () => {
        const body = Buffer.concat(chunks);
        if (answer.statusCode === 200) return resolve(`200 ${body.length}`);
        const { reason } = JSON.parse(body.toString()).error.metadata;
        const isTold = Number(answer.headers["retry-after"]) >= 1;
        resolve(`${answer.statusCode} ${reason} ${isTold ? "with" : "without"} Retry-After`);
      });
    });
    request.end(JSON.stringify({ model: flowModel, input, voice: "alloy", response_format: "pcm" }));
  });
}

function count(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

const whole = `200 ${audioBytes}`;
const refused = "503 overloaded with Retry-After";

describe("a thousand streams at once", () => {
  test("are served whole or refused with when to come again, nothing else", async () => {
    const counts = count(await Promise.all(Array.from({ length: streams }, stream)));
    expect(Object.keys(counts).sort()).toEqual([whole, refused]);
    expect(counts[whole]).toBeGreaterThanOrEqual(maxInFlight);
    expect(counts[refused]).toBeGreaterThan(0);
    await waitUntil(async () => (await stream()) === whole);
  });

  test("are that for those, too, who call the service", async () => {
    const call = () =>
      speakDirectly(flow.stack, input, `Bearer ${flow.stack.inferenceKey}`).then(
        (answer) => `200 ${answer.audioBytes}`,
        (thrown: unknown) => {
          const { reason, retryAfterMs = 0 } = DomainError.from(thrown);
          return reason === ErrorReason.OVERLOADED && retryAfterMs >= 1000 ? refused : String(thrown);
        },
      );
    const counts = count(await Promise.all(Array.from({ length: 4 * maxInFlight }, call)));
    expect(Object.keys(counts).sort()).toEqual([whole, refused]);
    expect(counts[whole]).toBeGreaterThanOrEqual(maxInFlight);
  });
});
