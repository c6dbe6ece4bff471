import { expect, type TestContext, test } from "vitest";
import { type AdapterFailure, type AdapterSetup, attempt, describeAdapter } from "./adapter.suite.ts";
import type {
  ImageAdapter,
  ImageCall,
  ImageFormat,
  ImageOutput,
  ProviderConnection,
  TokenUsage,
} from "./contract.ts";

/** A provider to examine. Its call is for one image without previews. */
export interface ImageProviderSetup extends AdapterSetup<ImageAdapter, ImageCall> {
  /** Formats to ask for; only the call's own unless given. */
  readonly formats?: readonly ImageFormat[];
  /** A valid call for several images. For: as many images as asked for. */
  readonly severalCall?: ImageCall;
  /** A valid call with previews, during which upstream work goes on. For: previews, leaving early. */
  readonly streamCall?: ImageCall;
  /** Whether the same seed gives the same bytes. */
  readonly deterministic?: boolean;
}

/** One way to make a provider fail before its first output. */
export type ImageFailure<S extends ImageProviderSetup> = AdapterFailure<S, ImageCall>;

/**
 * The acceptance suite of an image provider: what contract.ts promises, tried from outside. A provider's own test calls
 * it at its top level.
 */
export function describeImageProvider<S extends ImageProviderSetup>(
  name: string,
  setup: () => S | Promise<S>,
  failures: readonly ImageFailure<S>[] = [],
): void {
  const use = {
    begin: async ({ adapter }: S, ...asked: Parameters<ImageAdapter["generate"]>) =>
      (await adapter.generate(...asked)).output,
    lastingCall: ({ streamCall }: S, context: TestContext) => streamCall ?? context.skip(noPreviews),
    textOf: ({ prompt }: ImageCall) => prompt,
  };
  describeAdapter(`${name} keeps the contract of an image provider`, setup, use, failures, (given) => {
    describeAnswers(given);
    describePreviews(given);
  });
}

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

async function drawAll(adapter: ImageAdapter, call: ImageCall, connection: ProviderConnection) {
  const answer = await adapter.generate(call, attempt(connection).context);
  const output = await Array.fromAsync(answer.output);
  const tokens: TokenUsage = answer.report()?.tokens ?? { prompt: 0, completion: 0 };
  const counts: readonly number[] = Object.values(tokens);
  return { output, counts };
}
