import { describe, expect, test } from "vitest";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { AudioFormat } from "../../gen/media/speech/v1/speech_pb.ts";
import { type LeavingScene, largePicture, startLeavingScene } from "../support/services/leaving.ts";
import { waitUntil } from "../support/wait-until.ts";

/** How a caller leaves. A deadline fires by itself once the moment has been reached. */
const ways = ["a cancel", "a cut socket", "the caller's deadline"] as const;
type Way = (typeof ways)[number];

/** One call at the moment at which its caller is to leave. */
interface Moment {
  /** Begins the call; `reached` resolves at the moment. */
  begin(scene: LeavingScene, call: Call): { readonly reached: Promise<unknown> };
  /** What becomes of it: "at the end", once the upstream was let go on. */
  readonly outcome: "released" | "charged at once" | "charged at the end";
}

/** What a call is made with, and what comes of it. */
interface Call {
  readonly options: { signal: AbortSignal; timeoutMs?: number; headers: Readonly<Record<string, string>> };
  /** Resolves when the test lets the upstream go on. */
  readonly gate: Promise<void>;
  /** Reads frames; resolves when this one has come. */
  read(frames: AsyncIterable<{ frame: { case?: string | undefined } }>, until?: string): Promise<void>;
}

const never = new Promise<void>(() => undefined);
const spoken = { model: "openai/tts-1", voice: "alloy", input: "Hello.", responseFormat: AudioFormat.PCM };
/** 6 characters at 15 USD a million. */
const speechCost = 90_000n;
const drawn = { model: "openai/gpt-image-2.5-flare", prompt: "A boat." };
const usage = {
  input_tokens: 20,
  input_tokens_details: { text_tokens: 20, image_tokens: 0 },
  output_tokens: 1_000,
  total_tokens: 1_020,
};
/** 20 tokens of text at 5 USD a million, 1,000 of images at 30. */
const imageCost = 30_100_000n;

const speechMoments: Readonly<Record<string, Moment>> = {
  "while credit is held": {
    outcome: "released",
    begin(scene, { gate, options, read }) {
      scene.paid.reserved = gate;
      void read(scene.speech.synthesize(spoken, options));
      return { reached: waitUntil(() => scene.paid.reservations.length === 1) };
    },
  },
  "when the upstream has the request": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      scene.upstream.next({ kind: "audio", beforeHeaders: () => gate });
      void read(scene.speech.synthesize(spoken, options));
      return { reached: scene.upstream.received(1) };
    },
  },
  "when the answer's headers are there": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      const reached = Promise.withResolvers<void>();
      const beforeChunk = () => {
        reached.resolve();
        return gate;
      };
      scene.upstream.next({ kind: "audio", beforeChunk });
      void read(scene.speech.synthesize(spoken, options));
      return { reached: reached.promise };
    },
  },
  "before the first usable audio": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      const beforeChunk = (index: number) => (index === 0 ? undefined : gate);
      scene.upstream.next({ kind: "audio", chunkBytes: 1, totalBytes: 4, beforeChunk });
      return { reached: read(scene.speech.synthesize(spoken, options), "audio") };
    },
  },
  "amid the audio": {
    outcome: "charged at once",
    begin(scene, { options, read }) {
      scene.upstream.next({ kind: "audio", beforeChunk: (index) => (index < 2 ? undefined : never) });
      return { reached: read(scene.speech.synthesize(spoken, options), "audio") };
    },
  },
  "after the last byte": {
    outcome: "charged at once",
    begin(scene, { options, read }) {
      scene.upstream.next({ kind: "audio", totalBytes: 4096, beforeEnd: () => never });
      return { reached: read(scene.speech.synthesize(spoken, options), "audio") };
    },
  },
};

const picture = await largePicture(1_500);

const imageMoments: Readonly<Record<string, Moment>> = {
  "while credit is held": {
    outcome: "released",
    begin(scene, { gate, options, read }) {
      scene.paid.reserved = gate;
      void read(scene.image.generate(drawn, options));
      return { reached: waitUntil(() => scene.paid.reservations.length === 1) };
    },
  },
  "when half of the request was sent": {
    outcome: "released",
    begin(scene, { gate, options, read }) {
      scene.holdBodies(gate);
      // More than the buffers of two sockets take of what nobody reads.
      const inputReferences = Array.from({ length: 3 }, () => ({
        source: { case: "data" as const, value: picture },
      }));
      void read(scene.image.generate({ ...drawn, inputReferences }, options));
      return { reached: waitUntil(() => scene.begun === 1) };
    },
  },
  "when the upstream has the request": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      scene.upstream.next({ kind: "image", usage, beforeHeaders: () => gate });
      void read(scene.image.generate(drawn, options));
      return { reached: scene.upstream.received(1) };
    },
  },
  "when the answer's headers are there": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      const reached = Promise.withResolvers<void>();
      const beforeEvent = () => {
        reached.resolve();
        return gate;
      };
      scene.upstream.next({ kind: "image", usage, beforeEvent });
      void read(scene.image.generate({ ...drawn, stream: true }, options));
      return { reached: reached.promise };
    },
  },
  "amid the previews": {
    outcome: "charged at the end",
    begin(scene, { gate, options, read }) {
      scene.upstream.next({
        kind: "image",
        usage,
        beforeEvent: (index) => (index < 1 ? undefined : gate),
      });
      return { reached: read(scene.image.generate({ ...drawn, stream: true }, options), "partial") };
    },
  },
  "amid the image's bytes": {
    outcome: "charged at once",
    begin(scene, { options, read }) {
      scene.upstream.next({ kind: "image", usage, imageBytes: 8 << 20 });
      return { reached: read(scene.image.generate({ ...drawn, stream: true }, options), "imageStart") };
    },
  },
};

describe.for(ways)("who leaves speech by %s", (way) => {
  test.for(Object.entries(speechMoments))("%s", ([, moment]) => leaveAt(moment, way, speechCost));
});

describe.for(ways)("who leaves images by %s", { timeout: 120_000 }, (way) => {
  test.for(Object.entries(imageMoments))("%s", ([, moment]) => leaveAt(moment, way, imageCost));
});

/** A caller's deadline that comes before its moment is tried again, with more time. */
async function leaveAt(moment: Moment, way: Way, costNanoUsd: bigint): Promise<void> {
  for (let deadlineMs = 700; !(await leave(moment, way, costNanoUsd, deadlineMs)); deadlineMs *= 3);
}

/** False when the moment was missed. */
async function leave(moment: Moment, way: Way, costNanoUsd: bigint, deadlineMs: number): Promise<boolean> {
  await using scene = await startLeavingScene();
  const { paid } = scene;
  const gate = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const done = Promise.withResolvers<void>();
  const deadline = way === "the caller's deadline" ? { timeoutMs: deadlineMs } : {};
  const options = { signal: leaving.signal, headers: scene.headers, ...deadline };
  const { reached } = moment.begin(scene, { gate: gate.promise, options, read: reader(done.promise) });
  const missed = waitUntil(() => scene.hasLeft, { timeoutMs: 60_000 });
  reached.catch(() => undefined);
  missed.catch(() => undefined);
  await Promise.race([reached, missed]);
  if (scene.hasLeft) return false;
  expect(paid.events).toEqual([]);
  if (way === "a cancel") leaving.abort();
  else if (way === "a cut socket") scene.proxy.dropConnections();
  await waitUntil(() => scene.hasLeft, { timeoutMs: 60_000 });
  await expectOutcome(scene, moment, gate.resolve, costNanoUsd);
  done.resolve();
  return true;
}

/** Reads frames until this one has come; after the start of an image it takes no more until all is over. */
function reader(done: Promise<void>): Call["read"] {
  return async (frames, until) => {
    const reached = Promise.withResolvers<void>();
    void (async () => {
      for await (const { frame } of frames) {
        if (frame.case !== until) continue;
        reached.resolve();
        if (until === "imageStart") await done;
      }
    })().catch(() => undefined);
    if (until !== undefined) await reached.promise;
  };
}

/** What comes of a request whose caller has left. */
async function expectOutcome(scene: LeavingScene, moment: Moment, open: () => void, costNanoUsd: bigint) {
  const { paid, upstream } = scene;
  if (moment.outcome === "released") {
    if (scene.begun === 0) open();
    await waitUntil(() => paid.released.length === 1 && paid.running.count === 0);
    expect([paid.events.length, upstream.requests.length]).toEqual([0, 0]);
    open();
    return;
  }
  if (moment.outcome === "charged at the end") {
    const asked = await upstream.received(1);
    expect([asked.fate, paid.events.length, paid.running.count]).toEqual(["open", 0, 1]);
    open();
  }
  await waitUntil(() => paid.events.length === 1);
  expect(paid.event()).toMatchObject({
    outcome: Outcome.SUCCEEDED,
    reason: "",
    cancelled: true,
    costNanoUsd,
    attempts: [{ outcome: Outcome.SUCCEEDED }],
  });
  expect([paid.released.length, paid.doubts.length]).toEqual([0, 0]);
}
