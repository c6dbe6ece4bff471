import sharp from "sharp";
import { expect, onTestFinished, test } from "vitest";
import type { ImageCall, ImageOutput } from "../contract.ts";
import { describeImageProvider } from "../image-provider.suite.ts";
import { createLocalProvider, type LocalProvider } from "./index.ts";

const connection = { baseUrl: "", apiKey: "" };
const call: ImageCall = {
  upstreamModel: "painter",
  prompt: "A red house by a lake at night.",
  n: 1,
  size: { width: 192, height: 128 },
  quality: "low",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: 7,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

describeImageProvider("local", () => {
  const provider = createLocalProvider();
  return {
    adapter: provider.image,
    connection,
    call,
    formats: ["png", "jpeg", "webp", "svg"],
    severalCall: { ...call, n: 3 },
    streamCall: { ...call, size: { width: 768, height: 512 }, stream: true },
    deterministic: true,
    running: () => provider.imagePool.running + provider.imagePool.waiting,
    close: () => provider.close(),
  };
});

function startProvider(): LocalProvider {
  const provider = createLocalProvider();
  onTestFinished(() => provider.close());
  return provider;
}

async function paint(provider: LocalProvider, changes: Partial<ImageCall>): Promise<ImageOutput[]> {
  const signal = new AbortController().signal;
  const answer = await provider.image.generate({ ...call, ...changes }, { signal, connection });
  return Array.fromAsync(answer.output);
}

async function only(provider: LocalProvider, changes: Partial<ImageCall>): Promise<Buffer> {
  const [output, ...others] = await paint(provider, changes);
  if (output?.kind !== "image" || others.length > 0) throw new Error("not one image");
  return Buffer.from(output.bytes);
}

const meanLightness = async (bytes: Buffer) => {
  const { channels } = await sharp(bytes).removeAlpha().stats();
  return channels.reduce((sum, { mean }) => sum + mean, 0) / channels.length;
};

test("words have effect: a night is darker than a day", async () => {
  const provider = startProvider();
  const night = await only(provider, { prompt: "mountains at night" });
  const day = await only(provider, { prompt: "mountains at noon" });
  expect(await meanLightness(night)).toBeLessThan(await meanLightness(day));
});

test("a transparent background has pixels that are not there, and the subject's that are", async () => {
  const bytes = await only(startProvider(), { prompt: "a cat", background: "transparent" });
  const alpha = (await sharp(bytes).stats()).channels[3];
  expect(alpha).toMatchObject({ min: 0, max: 255 });
});

test("markup holds neither scripts nor addresses, whatever the prompt says", async () => {
  const prompt = '</title></svg><script>alert(1)</script><image href="http://localhost/x"/> & a boat';
  const markup = (await only(startProvider(), { prompt, format: "svg" })).toString("utf8");
  const drawn = markup.replace(/<title>[^<]*<\/title>/, "");
  expect(drawn).not.toBe(markup);
  expect(drawn).not.toMatch(/script|<image|href/i);
  expect(await sharp(Buffer.from(markup)).metadata()).toMatchObject({ format: "svg" });
});

test.for([
  { width: 64, height: 512 },
  { width: 512, height: 64 },
  { width: 4096, height: 4096 },
])("pictures have the pixels asked for: $width × $height", async (size) => {
  const bytes = await only(startProvider(), { size, format: "jpeg" });
  expect(await sharp(bytes).metadata()).toMatchObject({ format: "jpeg", ...size });
});

test("references steer the colours", async () => {
  const provider = startProvider();
  const square = (red: number, blue: number) =>
    sharp({ create: { width: 32, height: 32, channels: 3, background: { r: red, g: 30, b: blue } } })
      .png()
      .toBuffer();
  const painted = async (bytes: Buffer) => {
    const references = [{ bytes, mediaType: "image/png" as const }];
    const { channels } = await sharp(await only(provider, { prompt: "hills", references })).stats();
    return (channels[0]?.mean ?? 0) - (channels[2]?.mean ?? 0);
  };
  expect(await painted(await square(230, 30))).toBeGreaterThan(await painted(await square(30, 230)));
});

test("a postcard is a single picture of its own sizes", async () => {
  const provider = startProvider();
  const bytes = await only(provider, { upstreamModel: "postcard", size: { width: 1536, height: 1024 } });
  expect(await sharp(bytes).metadata()).toMatchObject({ format: "png", width: 1536, height: 1024 });
});
