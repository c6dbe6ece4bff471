import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import type { ImageCall, ImageFormat } from "../contract.ts";
import { createLocalProvider } from "./engine.ts";

const provider = createLocalProvider({ imageThreads: 1 });
afterAll(() => provider.close());

const usual: ImageCall = {
  upstreamModel: "postcard",
  prompt: "a lighthouse by the sea",
  n: 1,
  size: undefined,
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: 3,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

async function paint(call: Partial<ImageCall> = {}) {
  const context = {
    signal: new AbortController().signal,
    connection: { baseUrl: "", apiKey: "" },
    onSent: () => undefined,
  };
  const { output } = await provider.image.generate({ ...usual, ...call }, context);
  return await Array.fromAsync(output);
}

describe("the postcard", () => {
  it.each([
    [undefined, 1536, 1024],
    [{ width: 1024, height: 1024 }, 1024, 1024],
    [{ width: 1024, height: 1536 }, 1024, 1536],
  ] as const)("is one picture of the size %j", async (size, width, height) => {
    for (const format of ["png", "jpeg"] satisfies ImageFormat[]) {
      const [image, ...others] = await paint({ size, format });
      expect(others).toEqual([]);
      if (image?.kind !== "image") throw new Error("no image");
      expect(await sharp(image.bytes).metadata()).toMatchObject({ format, width, height, hasAlpha: false });
    }
  });

  it("has a border of paper", async () => {
    const [image] = await paint();
    if (image?.kind !== "image") throw new Error("no image");
    const { data, info } = await sharp(image.bytes).raw().toBuffer({ resolveWithObject: true });
    const at = (x: number, y: number) => [
      ...data.subarray((y * info.width + x) * 3, (y * info.width + x) * 3 + 3),
    ];
    expect(at(4, 4)).toEqual(at(info.width - 5, info.height - 5));
    expect(Math.min(...at(4, 4))).toBeGreaterThan(200);
  });

  it("is painted with no choice of quality, and the same for the same seed", async () => {
    const [low, high, other] = [
      await paint({ quality: "low" }),
      await paint({ quality: "high" }),
      await paint({ seed: 4 }),
    ];
    expect(low).toEqual(high);
    expect(low).not.toEqual(other);
  });

  it.each<Partial<ImageCall>>([
    { n: 2 },
    { stream: true },
    { format: "webp" },
    { format: "svg" },
    { background: "transparent" },
    { size: { width: 512, height: 512 } },
    { size: { width: 1024, height: 768 } },
    { references: [{ bytes: new Uint8Array(1), mediaType: "image/png" }] },
  ])("does not exist with %j", async (call) => {
    await expect(paint(call)).rejects.toMatchObject({ kind: "invalid_request" });
  });
});
