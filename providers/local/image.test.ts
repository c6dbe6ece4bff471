import { createHash } from "node:crypto";
import sharp from "sharp";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { startChild } from "../../test/support/processes/child.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type ImageCall, type ImageFormat, type ImageOutput, ProviderError } from "../contract.ts";
import { describeImageProvider } from "../image-provider.suite.ts";
import { createLocalProvider, type LocalProvider, type LocalProviderOptions } from "./engine.ts";

const opened: LocalProvider[] = [];

function open(options: LocalProviderOptions = {}): LocalProvider {
  const provider = createLocalProvider({ imageThreads: 1, ...options });
  opened.push(provider);
  return provider;
}

const shared = createLocalProvider({ imageThreads: 2, randomSeed: () => 11 });

afterEach(async () => {
  await Promise.all(opened.splice(0).map((provider) => provider.close()));
});
afterAll(() => shared.close());

const connection = { baseUrl: "", apiKey: "" };
const usual: ImageCall = {
  upstreamModel: "painter",
  prompt: "a red house by a lake in the mountains",
  n: 1,
  size: { width: 128, height: 128 },
  quality: "low",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: 1,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

const never = new AbortController().signal;

async function begin(provider: LocalProvider, call: Partial<ImageCall> = {}, signal = never) {
  return await provider.image.generate(
    { ...usual, ...call },
    { signal, connection, onSent: () => undefined },
  );
}

async function paint(call: Partial<ImageCall> = {}, provider = shared): Promise<ImageOutput[]> {
  return await Array.fromAsync((await begin(provider, call)).output);
}

async function bytesOf(call: Partial<ImageCall> = {}, provider = shared): Promise<Buffer> {
  const last = (await paint(call, provider)).at(-1);
  if (last?.kind !== "image") throw new Error("no image");
  return Buffer.from(last.bytes);
}

async function failureOf(promise: Promise<unknown>): Promise<ProviderError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ProviderError);
  return thrown as ProviderError;
}

const idle = ({ imagePool }: LocalProvider) => imagePool.running === 0 && imagePool.waiting === 0;

describeImageProvider("the engine in this process", async () => {
  const provider = createLocalProvider({ imageThreads: 1 });
  const large = { width: 1_024, height: 1_024 };
  return {
    adapter: provider.image,
    connection,
    call: usual,
    formats: ["png", "jpeg", "webp", "svg"] as const,
    severalCall: { ...usual, n: 3 },
    streamCall: { ...usual, size: large, n: 4, stream: true },
    deterministic: true,
    running: () => provider.imagePool.running + provider.imagePool.waiting,
    close: provider.close,
  };
}, [
  {
    name: "an unknown model",
    kind: "invalid_request",
    provoke: () => ({ call: { ...usual, upstreamModel: "constructor" } }),
  },
  {
    name: "a reference that is no image",
    kind: "invalid_request",
    provoke: () => ({
      call: { ...usual, references: [{ bytes: Buffer.from("no image"), mediaType: "image/png" }] },
    }),
  },
]);

/** Every aspect ratio at each tier, as the catalogue derives pixels. */
const ratios =
  "1:1 1:2 1:4 1:8 2:1 2:3 3:2 3:4 4:1 4:3 4:5 5:4 8:1 9:16 16:9 9:19.5 19.5:9 9:20 20:9 9:21 21:9".split(
    " ",
  );

function sizeOf(ratio: string, side: number): { width: number; height: number } {
  const [across = 1, down = 1] = ratio.split(":").map(Number);
  return {
    width: Math.round(side * Math.sqrt(across / down)),
    height: Math.round(side * Math.sqrt(down / across)),
  };
}

describe("what it makes", () => {
  it.each(ratios)("has the pixels asked for: %s", async (ratio) => {
    for (const side of [96, 512]) {
      const size = sizeOf(ratio, side);
      const format = side === 512 ? "webp" : "png";
      expect(await sharp(await bytesOf({ size, format })).metadata()).toMatchObject({ ...size, format });
    }
  });

  it.each(["1:1", "21:9", "1:8"])("has the pixels asked for at 2K: %s", async (ratio) => {
    const size = sizeOf(ratio, 2_048);
    const metadata = await sharp(await bytesOf({ size, format: "jpeg" })).metadata();
    expect(metadata).toMatchObject({ ...size, format: "jpeg", hasAlpha: false });
  });

  it("is a square of 1K where the call names no size", async () => {
    expect(await sharp(await bytesOf({ size: undefined })).metadata()).toMatchObject({
      width: 1_024,
      height: 1_024,
    });
  });

  it("is as transparent as was asked for", async () => {
    for (const format of ["png", "webp"] satisfies ImageFormat[]) {
      const clear = await bytesOf({ format, background: "transparent", prompt: "a cat" });
      const alpha = await sharp(clear).extractChannel(3).raw().toBuffer();
      expect(alpha.includes(0) && alpha.includes(255)).toBe(true);
      const solid = await bytesOf({ format, background: "opaque", prompt: "a cat" });
      expect((await sharp(solid).metadata()).hasAlpha).toBe(false);
    }
  });

  it("is markup in UTF-8 for svg", async () => {
    const svg = (await bytesOf({ format: "svg", prompt: "a cat; café <b>" })).toString("utf8");
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="128" height="128"/);
    expect(svg).toContain("<title>a cat; café &lt;b&gt;</title>");
    expect(await sharp(Buffer.from(svg)).metadata()).toMatchObject({
      format: "svg",
      width: 128,
      height: 128,
    });
  });

  it.each(["jpeg", "webp"] as const)("is the larger the better its compression: %s", async (format) => {
    const size = { width: 256, height: 256 };
    const lengths: number[] = [];
    for (const compression of [0, 50, 100])
      lengths.push((await bytesOf({ format, compression, size })).length);
    expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
    expect(new Set(lengths).size).toBe(3);
  });

  it("follows the colours of references", async () => {
    const reference = async (background: string) => ({
      bytes: await sharp({ create: { width: 64, height: 64, channels: 3, background } })
        .png()
        .toBuffer(),
      mediaType: "image/png" as const,
    });
    const meanOf = async (color: string) => {
      const { channels } = await sharp(await bytesOf({ references: [await reference(color)] })).stats();
      return channels.map(({ mean }) => mean);
    };
    const [[red = 0, , blueOfRed = 0], [redOfBlue = 0, , blue = 0]] = [
      await meanOf("#d02020"),
      await meanOf("#2030d0"),
    ];
    expect(red).toBeGreaterThan(redOfBlue + 20);
    expect(blue).toBeGreaterThan(blueOfRed + 20);
  });
});

describe("seeds", () => {
  it("count up over the images of one call", async () => {
    const [first, second] = await paint({ seed: 41, n: 2 });
    expect(first).not.toEqual(second);
    expect(await paint({ seed: 42 })).toEqual([second]);
  });

  it("may be as large as numbers get", async () => {
    const images = await paint({ seed: Number.MAX_SAFE_INTEGER, n: 3 });
    expect(new Set(images.map((image) => JSON.stringify(image))).size).toBe(3);
  });

  it("are drawn for calls without one", async () => {
    expect(await paint({ seed: undefined })).toEqual(await paint({ seed: 11 }));
    const random = open();
    expect(await paint({ seed: undefined }, random)).not.toEqual(await paint({ seed: undefined }, random));
  });

  it("give the same bytes in other processes", async () => {
    const script = "providers/local/__fixtures__/paint-large.ts";
    const runs = await Promise.all(
      [1, 2].map(() => startChild(script, { args: ["small"] }).line((line) => line.startsWith("{"))),
    );
    const [first, second] = runs.map((line) => (JSON.parse(line) as { digests: string[] }).digests);
    expect(first).toHaveLength(3);
    expect(second).toEqual(first);
    const here = await bytesOf({
      prompt: "a castle by a lake in the mountains under the milky way",
      size: { width: 256, height: 256 },
      quality: "high",
      seed: 7,
    });
    expect(createHash("sha256").update(here).digest("hex")).toBe(first?.[0]);
  });
});

describe("what it says of the prompt", () => {
  it("is what the painter did not understand, before any picture", async () => {
    const { unrecognizedWords, output } = await begin(shared, { prompt: "a gryphon by a lake" });
    expect(unrecognizedWords).toEqual(["gryphon"]);
    expect(await Array.fromAsync(output)).toHaveLength(1);
    const postcard = await begin(shared, { upstreamModel: "postcard", size: undefined, prompt: "a gryphon" });
    expect(postcard.unrecognizedWords).toBeUndefined();
    await Array.fromAsync(postcard.output);
  });
});

describe("previews", () => {
  it("come before each image, the coarser one first, small and like it", async () => {
    const outputs = await paint({
      n: 2,
      stream: true,
      size: { width: 2_048, height: 1_024 },
      format: "jpeg",
    });
    expect(outputs.map((each) => (each.kind === "partial" ? each.index : each.kind))).toEqual([
      0,
      1,
      "image",
      2,
      3,
      "image",
    ]);
    const sharpness: number[] = [];
    for (const output of outputs.slice(0, 3)) {
      if (output.kind === "text") throw new Error("no picture");
      expect(output.mediaType).toBe("image/jpeg");
      const { width = 0, height = 0 } = await sharp(output.bytes).metadata();
      expect(width / height).toBeCloseTo(2, 2);
      if (output.kind === "partial") expect(output.bytes.length).toBeLessThan(3 * 2 ** 20);
      sharpness.push((await sharp(output.bytes).resize(724, 362).stats()).sharpness);
    }
    expect(sharpness).toEqual(sharpness.toSorted((a, b) => a - b));
  });

  it("of svg are pixels, and keep a transparent ground", async () => {
    const [preview] = await paint({
      stream: true,
      format: "svg",
      background: "transparent",
      prompt: "a cat",
    });
    if (preview?.kind !== "partial") throw new Error("no preview");
    expect(preview.mediaType).toBe("image/png");
    expect((await sharp(preview.bytes).metadata()).hasAlpha).toBe(true);
  });

  it("leave the image as it is without them", async () => {
    expect(await bytesOf({ stream: true })).toEqual(await bytesOf());
  });
});

describe("what it refuses", () => {
  it.each<Partial<ImageCall>>([
    { n: 0 },
    { n: 11 },
    { n: 1.5 },
    { size: { width: 4, height: 4 } },
    { size: { width: 100.5, height: 100 } },
    { size: { width: 6_000, height: 6_000 } },
    { size: { width: 20_000, height: 100 } },
    { format: "jpeg", background: "transparent" },
    { format: "gif" as "png" },
    { seed: 1.5 },
  ])("what it cannot make: %j", async (call) => {
    expect((await failureOf(paint(call))).kind).toBe("invalid_request");
  });

  it("a new request while too many wait; those that have begun finish", async () => {
    const provider = open({ maxWaitingImages: 2 });
    const asked = [1, 2, 3, 4, 5].map(() => begin(provider));
    const admitted = await Promise.all(asked.slice(0, 3));
    for (const refused of asked.slice(3)) {
      expect(await failureOf(refused)).toMatchObject({
        kind: "engine_full",
        retryable: true,
        retryAfterMs: 2_000,
      });
    }
    for (const { output } of admitted) expect(await Array.fromAsync(output)).toHaveLength(1);
    expect(await paint({}, provider)).toHaveLength(1);
  });

  it("to go on when a picture takes too long", async () => {
    const provider = open({ imageTimeoutMs: 1 });
    expect((await failureOf(paint({ size: { width: 2_048, height: 2_048 } }, provider))).kind).toBe(
      "timeout",
    );
  });
});

describe("how it stops", () => {
  it("paints one picture ahead of a consumer that stands still, and none after it has left", async () => {
    const provider = open();
    const output = (await begin(provider, { n: 6 })).output[Symbol.asyncIterator]();
    await waitUntil(() => idle(provider));
    expect(provider.imagePool.completed).toBe(1);
    await output.next();
    await waitUntil(() => idle(provider));
    expect(provider.imagePool.completed).toBe(2);
    await output.return?.();
    expect(await output.next()).toEqual({ done: true, value: undefined });
    expect(provider.imagePool.completed).toBe(2);
  });

  it("takes what waits out of the line when its signal fires, with its reason where that is a ProviderError", async () => {
    const provider = open();
    const busy = await begin(provider, { n: 2 });
    const controller = new AbortController();
    const { output } = await begin(provider, {}, controller.signal);
    const next = failureOf(output[Symbol.asyncIterator]().next());
    expect(provider.imagePool.waiting).toBe(1);
    controller.abort(new ProviderError("network", "the reason"));
    expect(provider.imagePool.waiting).toBe(0);
    expect((await next).message).toBe("the reason");
    expect(await Array.fromAsync(busy.output)).toHaveLength(2);
  });

  it("with an error that lets others try when closed", async () => {
    const provider = open();
    const { output } = await begin(provider, { n: 10 });
    await provider.close();
    expect((await failureOf(Array.fromAsync(output))).retryable).toBe(true);
  });
});

describe("its memory", () => {
  it("stays under 1 GiB for pictures of 4K, several at a time", async () => {
    const child = startChild("providers/local/__fixtures__/paint-large.ts");
    const { peakMib, digests } = JSON.parse(await child.line((line) => line.startsWith("{"))) as {
      peakMib: number;
      digests: string[];
    };
    expect(digests).toHaveLength(3);
    expect(peakMib).toBeLessThan(1_024);
  });
});
