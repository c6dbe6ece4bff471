import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageFormat,
  type ImageOutput,
  type ProviderConnection,
  ProviderError,
  type ProviderErrorKind,
} from "./contract.ts";

/** A provider to examine, and what may be known of its upstream. Each optional part switches tests on. */
export interface ImageProviderSetup {
  readonly adapter: ImageAdapter;
  readonly connection: ProviderConnection;
  /** A valid call for one image without previews. */
  readonly call: ImageCall;
  /** Formats to ask for; only the call's own unless given. */
  readonly formats?: readonly ImageFormat[];
  /** A valid call for several images. For: as many images as asked for. */
  readonly severalCall?: ImageCall;
  /** A valid call with previews, during which upstream work goes on. For: previews, leaving early. */
  readonly streamCall?: ImageCall;
  /** Whether the same seed gives the same bytes. */
  readonly deterministic?: boolean;
  /** How many requests or pieces of work run at the upstream now. For: abort, early return. */
  running?(): number;
  /** Frees what the setup holds. */
  close?(): void | Promise<void>;
}

/** One way to make a provider fail before its first output. */
export interface ImageFailure<S extends ImageProviderSetup> {
  readonly name: string;
  readonly kind: ProviderErrorKind;
  /** The upstream's status that the error must carry; unset: none. */
  readonly status?: number;
  /** Makes the next request fail; returns what to ask when it is not the setup's own call and connection. */
  provoke(given: S): ProvokedImage | undefined | Promise<ProvokedImage | undefined>;
}

/** What to ask in place of the setup's own. */
export interface ProvokedImage {
  readonly call?: ImageCall;
  readonly connection?: ProviderConnection;
}

/**
 * The acceptance suite of an image provider: what contract.ts promises, tried from outside. A provider's own test calls
 * it at its top level.
 */
export function describeImageProvider<S extends ImageProviderSetup>(
  name: string,
  setup: () => S | Promise<S>,
  failures: readonly ImageFailure<S>[] = [],
): void {
  describe(`${name} keeps the contract of an image provider`, () => {
    let given: S;
    beforeAll(async () => {
      given = await setup();
    });
    afterAll(async () => await given?.close?.());

    describeAnswers(() => given);
    describePreviews(() => given);
    describeEnding(() => given);
    for (const failure of failures) {
      test(`${failure.name}: throws ${failure.kind}`, async () => await expectFailure(given, failure));
    }
  });
}

/** How long the suite waits for what must come soon. */
const soon = { timeout: 10_000, interval: 10 };

const notCounted = "the setup does not count what runs at its upstream";
const noPreviews = "the provider gives no previews";
const single = "the provider makes single images";

function describeAnswers(setup: () => ImageProviderSetup): void {
  test("draws one image of every format, and says what it is", async () => {
    const { adapter, call, connection, formats = [call.format] } = setup();
    for (const format of formats) {
      const { output, counts } = await drawAll(adapter, { ...call, format }, connection);
      expect(output.map(({ kind }) => kind)).toEqual(["image"]);
      for (const { bytes, mediaType } of imagesOf(output)) {
        expect(mediaType).toBe(mediaTypes[format]);
        expect(signatures[format].test(Buffer.from(bytes.subarray(0, 256)).toString("latin1"))).toBe(true);
      }
      expect(counts.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
    }
  });

  test("draws as many images as were asked for, and no more", async (context) => {
    const { adapter, connection, severalCall = context.skip(single) } = setup();
    const { output } = await drawAll(adapter, severalCall, connection);
    expect(severalCall.n).toBeGreaterThan(1);
    expect(imagesOf(output)).toHaveLength(severalCall.n);
  });

  test("reports once that its request has been sent, before there is an answer", async () => {
    const { adapter, call, connection } = setup();
    const order: string[] = [];
    const { context } = attempt(connection, () => order.push("sent"));
    const answer = await adapter.generate(call, context);
    order.push("answered");
    await Array.fromAsync(answer.output);
    expect(order).toEqual(["sent", "answered"]);
  });

  test("ignores settings that it does not know", async () => {
    const { adapter, call, connection } = setup();
    const odd = { ...call, settings: { ...call.settings, "x-unknown": 1 } };
    expect(imagesOf((await drawAll(adapter, odd, connection)).output)).toHaveLength(1);
  });

  test("draws the same for the same seed, also with other work beside it", async (context) => {
    const { adapter, call, connection, deterministic = false } = setup();
    if (!deterministic) context.skip("the provider promises nothing for a seed");
    const draw = async (seed: number) =>
      imagesOf((await drawAll(adapter, { ...call, seed }, connection)).output).map(({ bytes }) =>
        Buffer.from(bytes).toString("base64"),
      );
    const [one, other, again] = await Promise.all([draw(7), draw(8), draw(7)]);
    expect(again).toEqual(one);
    expect(other).not.toEqual(one);
  });
}

function describePreviews(setup: () => ImageProviderSetup): void {
  test("gives no previews where none are wanted", async () => {
    const { adapter, call, connection, streamCall = call } = setup();
    const { output } = await drawAll(adapter, { ...streamCall, stream: false }, connection);
    expect(output.every(({ kind }) => kind === "image")).toBe(true);
  });

  test("counts its previews from 0, and the image comes after them", async (context) => {
    const { adapter, connection, streamCall = context.skip(noPreviews) } = setup();
    const { output } = await drawAll(adapter, streamCall, connection);
    const indexes = output.flatMap((each) => (each.kind === "partial" ? [each.index] : []));
    expect(indexes).toEqual(indexes.map((_, place) => place));
    expect(indexes.length).toBeGreaterThan(0);
    expect(output.every((each) => each.kind === "text" || each.bytes.length > 0)).toBe(true);
    expect(output.at(-1)?.kind).toBe("image");
  });
}

function describeEnding(setup: () => ImageProviderSetup): void {
  test("ends upstream work when the consumer leaves early", async (context) => {
    const { adapter, connection, running = context.skip(notCounted), streamCall } = setup();
    const call = streamCall ?? context.skip(noPreviews);
    const answer = await adapter.generate(call, attempt(connection).context);
    for await (const output of answer.output) {
      expect(output.kind).not.toBe("image");
      break;
    }
    await untilIdle(running);
  });

  test("ends upstream work and throws when the signal fires amid the output", async (context) => {
    const { adapter, connection, running = context.skip(notCounted), streamCall } = setup();
    const call = streamCall ?? context.skip(noPreviews);
    const { controller, context: inside } = attempt(connection);
    const answer = await adapter.generate(call, inside);
    const output = answer.output[Symbol.asyncIterator]();
    expect((await output.next()).done).not.toBe(true);
    controller.abort();
    await untilIdle(running);
    await expect(readOn(output)).rejects.toBeInstanceOf(ProviderError);
  });

  test("throws and leaves nothing behind when the signal fires before the answer", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const { controller, context: inside } = attempt(connection);
    const drawing = draw(adapter, call, inside);
    controller.abort();
    await expect(drawing).rejects.toBeInstanceOf(ProviderError);
    await untilIdle(running);
  });

  test("throws and begins nothing when the signal has fired already", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const { controller, context: inside } = attempt(connection);
    controller.abort();
    await expect(draw(adapter, call, inside)).rejects.toBeInstanceOf(ProviderError);
    expect(running()).toBe(0);
  });
}

async function expectFailure<S extends ImageProviderSetup>(
  given: S,
  failure: ImageFailure<S>,
): Promise<void> {
  const asked: ProvokedImage = (await failure.provoke(given)) ?? {};
  const { call = given.call, connection = given.connection } = asked;
  const thrown: unknown = await draw(given.adapter, call, attempt(connection).context).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ProviderError);
  if (!(thrown instanceof ProviderError)) return;
  expect({ kind: thrown.kind, status: thrown.status }).toEqual({
    kind: failure.kind,
    status: failure.status,
  });
  expect(thrown.message).not.toBe("");
  const secrets = [call.prompt, connection.apiKey, connection.baseUrl].filter((text) => text.trim() !== "");
  for (const secret of secrets) expect(thrown.message).not.toContain(secret);
  if (given.running !== undefined) await untilIdle(given.running);
}

const mediaTypes: Readonly<Record<ImageFormat, string>> = {
  png: "image/png",
  jpeg: "image/jpeg",
  webp: "image/webp",
  svg: "image/svg+xml",
};

/** What images begin with, one character a byte. */
const signatures: Readonly<Record<ImageFormat, RegExp>> = {
  png: /^\x89PNG\r\n/,
  jpeg: /^\xff\xd8\xff/,
  webp: /^RIFF.{4}WEBP/s,
  svg: /^\s*<(svg|\?xml)/,
};

type FinalImage = Extract<ImageOutput, { kind: "image" }>;

function imagesOf(output: readonly ImageOutput[]): readonly FinalImage[] {
  return output.filter((each) => each.kind === "image");
}

function attempt(connection: ProviderConnection, onSent = () => {}) {
  const controller = new AbortController();
  const context: AttemptContext = { signal: controller.signal, connection, onSent };
  return { controller, context };
}

async function draw(adapter: ImageAdapter, call: ImageCall, context: AttemptContext) {
  const answer = await adapter.generate(call, context);
  const output = await Array.fromAsync(answer.output);
  return { output, counts: Object.values(answer.usage() ?? {}) };
}

async function drawAll(adapter: ImageAdapter, call: ImageCall, connection: ProviderConnection) {
  return await draw(adapter, call, attempt(connection).context);
}

async function readOn(output: AsyncIterator<ImageOutput>): Promise<void> {
  while ((await output.next()).done !== true);
}

async function untilIdle(running: () => number): Promise<void> {
  await vi.waitFor(() => expect(running()).toBe(0), soon);
}
