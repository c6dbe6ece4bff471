/** What holds of the answer to a generation in either medium: how it ends when its client leaves, is slow, or time is over. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  errorOf,
  type GatewayServer,
  type GatewayServerOptions,
  post,
  RawConnection,
  rawRequest,
  type SentRequest,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

/** A handler of a service that streams frames. */
export type Frames<F> = (request: unknown, context: HandlerContext) => AsyncIterable<F>;

/** A medium's answers, and how a test asks for one. */
export interface MediaAnswers<F, P extends string> {
  /** One that is good. */
  readonly request: SentRequest;
  /** Where the service runs. */
  readonly places: readonly P[];
  /** Starts a gateway whose service in that place answers so. */
  start(
    place: P,
    frames: Frames<F>,
    settings?: GatewayServerOptions["settings"],
  ): Promise<AsyncDisposable & { readonly gateway: GatewayServer }>;
  /** The setting of the longest time that a request may take. */
  readonly timeoutSetting: "speechTimeoutMs" | "imageTimeoutMs";
  /** The first frame, by which nothing goes out. */
  readonly started: F;
  /** Those behind it by which something goes out. */
  readonly begun: readonly F[];
  /** A frame of 256 KiB, so many of which stand between `before` and `after` in a whole answer of 100 MiB. */
  readonly long: { readonly before: readonly F[]; readonly frame: F; readonly after: readonly F[] };
  /** Throws unless an answer of so many bytes is the whole one. */
  expectWhole(bytes: number): void;
}

/** Bytes of `long.frame`, and how many of them there are. */
export const longFrame = { bytes: 256 * 1024, count: 400 } as const;
const mostUnreadBytes = 50 << 20;

/** Frames one after another, and then what the test says. */
export function answering<F>(
  frames: readonly F[],
  then: (context: HandlerContext) => Promise<void> = async () => undefined,
): Frames<F> {
  return async function* (_request, context) {
    yield* frames;
    await then(context);
  };
}

/** Waits for the end of the call. */
export function neverEnding({ signal }: HandlerContext): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

/** The line that a gateway logs of its only request, once that has ended. */
export function requestLine({ logged }: GatewayServer): Promise<Record<string, unknown>> {
  return waitUntil(() => logged.find(({ msg }) => msg === "request"));
}

/** The suite. */
export function describeMediaAnswers<F, P extends string>(media: MediaAnswers<F, P>): void {
  describe.for(media.places)("an answer from a service %s", (place) => {
    describeEnds(media, place);
  });
  describe.for(media.places)("a client that takes nothing from a service %s", (place) => {
    describeSlowClient(media, place);
  });
}

function describeEnds<F, P extends string>(media: MediaAnswers<F, P>, place: P): void {
  const { started, begun, request } = media;

  test.for([
    ["before the first byte", [started]],
    ["in the middle", [started, ...begun]],
  ] as const)("is cancelled at the service when the client leaves %s", async ([, frames]) => {
    let waiting = false;
    let aborted = false;
    const handler = answering(frames, async (context) => {
      waiting = true;
      await neverEnding(context).catch(() => {
        aborted = true;
      });
    });
    await using both = await media.start(place, handler);
    const client = new RawConnection(both.gateway);
    client.send(rawRequest(request));
    await waitUntil(() => waiting && (frames.length === 1 || client.received.includes("\r\n\r\n")));
    client[Symbol.dispose]();
    await waitUntil(() => aborted);
    expect(await requestLine(both.gateway)).toMatchObject({ complete: false, reason: "cancelled" });
    expect(both.gateway.logged).not.toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("ends at the deadline with 524 while nothing has gone out", async () => {
    const settings = { [media.timeoutSetting]: 300 };
    await using both = await media.start(place, answering([started], neverEnding), settings);
    expect(await errorOf(await post(both.gateway, request))).toEqual({ status: 524, reason: "timed_out" });
  });

  test("is cut at the deadline once something has gone out", async () => {
    await beginInTime(async (timeoutMs) => {
      const settings = { [media.timeoutSetting]: timeoutMs };
      await using both = await media.start(place, answering([started, ...begun], neverEnding), settings);
      const answer = post(both.gateway, request).then(bodyOf);
      const end = await answer.catch(() => "cut");
      expect(end).toBeOneOf(["late", "cut"]);
      return end === "cut";
    });
  });
}

function describeSlowClient<F, P extends string>(media: MediaAnswers<F, P>, place: P): void {
  test("makes the service wait, and gets all of it once it reads on", async () => {
    const { state, handler } = longAnswer(media);
    await using both = await media.start(place, handler);
    const response = await pausedClient(both.gateway, media.request);
    let before = -1;
    await waitUntil(
      () => {
        const settled = state.produced === before;
        before = state.produced;
        return settled && before > 0;
      },
      { intervalMs: 200 },
    );
    expect(state.produced * longFrame.bytes).toBeLessThan(mostUnreadBytes);
    let bytes = 0;
    for await (const part of response) bytes += (part as Buffer).byteLength;
    media.expectWhole(bytes);
    expect(response.complete).toBe(true);
  });

  test("is cut after its time, and the service hears of it", async () => {
    expect(await cutOff({ clientStallTimeoutMs: 100 })).toBe(true);
  });

  test("is cut at the deadline of the whole request, and the service hears of it", async () => {
    await beginInTime((timeoutMs) => cutOff({ [media.timeoutSetting]: timeoutMs }));
  });

  /** Whether its answer has begun; if so, it was cut. */
  async function cutOff(settings: GatewayServerOptions["settings"]): Promise<boolean> {
    const { state, handler } = longAnswer(media);
    await using both = await media.start(place, handler, settings);
    const response = await pausedClient(both.gateway, media.request);
    if (response.statusCode === 524) return false;
    await waitUntil(() => state.aborted);
    expect(state.produced).toBeLessThan(longFrame.count);
    expect(await requestLine(both.gateway)).toMatchObject({ complete: false, reason: "timed_out" });
    response.resume();
    await waitUntil(() => response.destroyed);
    expect(response.complete).toBe(false);
    return true;
  }
}

/** Tries ever longer deadlines, until one is long enough for an answer to begin: the machine may have other work. */
async function beginInTime(begins: (timeoutMs: number) => Promise<boolean>): Promise<void> {
  for (const timeoutMs of [300, 3000, 30_000]) if (await begins(timeoutMs)) return;
  throw new Error("no answer began in time");
}

/** The body of an answer; "late" for one of 524. */
async function bodyOf(response: Response): Promise<string> {
  const text = await response.text();
  return response.status === 524 ? "late" : text;
}

/** Counts what it was asked for. */
function longAnswer<F>({ started, long }: Pick<MediaAnswers<F, string>, "started" | "long">) {
  const state = { produced: 0, aborted: false };
  const handler: Frames<F> = async function* (_request, { signal }) {
    signal.addEventListener("abort", () => {
      state.aborted = true;
    });
    yield started;
    yield* long.before;
    for (; state.produced < longFrame.count; state.produced++) yield long.frame;
    yield* long.after;
  };
  return { state, handler };
}

/** Asks, and reads nothing of the answer but its headers. */
async function pausedClient({ port }: GatewayServer, request: SentRequest): Promise<IncomingMessage> {
  const { path, key, body } = request;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const sent = httpRequest({ port, host: "127.0.0.1", path, method: "POST", headers });
  sent.on("error", () => undefined);
  sent.end(JSON.stringify(body));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  return response;
}
