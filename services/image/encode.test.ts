import sharp from "sharp";
import { describe, expect, test, vi } from "vitest";
import { sniffImageType } from "../../lib/http/image-type.ts";
import { type ImageFormat, ProviderError } from "../../providers/contract.ts";
import { canTranscode, type TranscodeOptions, transcodeImage } from "./encode.ts";
import { DecodeBudget } from "./references/decode-budget.ts";

const rasters = ["png", "jpeg", "webp"] as const;

function optionsOf(more: Partial<TranscodeOptions> = {}): TranscodeOptions {
  return {
    compression: undefined,
    background: "auto",
    room: new DecodeBudget().of("a key"),
    signal: new AbortController().signal,
    ...more,
  };
}

/** Left half opaque red, right half nothing at all. */
async function halfTransparent(format: "png" | "webp" | "gif" = "png"): Promise<Buffer> {
  const red = { create: { width: 32, height: 48, channels: 4, background: "#ff0000" } } as const;
  const clear = { r: 0, g: 0, b: 0, alpha: 0 };
  return sharp(red).extend({ right: 32, background: clear }).toFormat(format).toBuffer();
}

async function noise(side: number): Promise<Buffer> {
  const gaussian = { type: "gaussian", mean: 128, sigma: 40 } as const;
  return sharp({ create: { width: side, height: side, channels: 3, background: "#000", noise: gaussian } })
    .png()
    .toBuffer();
}

/** Red, green, blue, alpha. */
async function pixelAt(bytes: Uint8Array, left: number, top: number): Promise<number[]> {
  const pixel = await sharp(bytes).ensureAlpha().extract({ left, top, width: 1, height: 1 }).raw().toBuffer();
  return [...pixel];
}

describe("transcoding", () => {
  test.for(rasters.flatMap((from) => rasters.map((to) => [from, to] as const)))(
    "makes %s into %s of the same size",
    async ([from, to]) => {
      const source = await sharp(await halfTransparent())
        .toFormat(from)
        .toBuffer();
      const made = await transcodeImage(source, from, to, optionsOf());
      expect(sniffImageType(made)).toBe(to);
      expect(await sharp(made).metadata()).toMatchObject({ format: to, width: 64, height: 48 });
      if (from === to) expect(made).toBe(source);
    },
  );

  test.for(["png", "webp"] as const)("keeps transparency in %s", async (to) => {
    const made = await transcodeImage(await halfTransparent("gif"), "gif", to, optionsOf());
    const [, , , alpha] = await pixelAt(made, 60, 24);
    expect(alpha).toBe(0);
    expect((await pixelAt(made, 4, 24))[3]).toBe(255);
  });

  test("puts jpeg on white, and others where an opaque background was asked for", async () => {
    const webp = await halfTransparent("webp");
    const jpeg = await transcodeImage(webp, "webp", "jpeg", optionsOf());
    const png = await transcodeImage(webp, "webp", "png", optionsOf({ background: "opaque" }));
    for (const made of [jpeg, png]) {
      for (const part of await pixelAt(made, 60, 24)) expect(part).toBeGreaterThan(250);
    }
    expect((await sharp(png).metadata()).hasAlpha).toBe(false);
  });

  test.for(["jpeg", "webp"] as const)("makes %s smaller the lower the compression value", async (to) => {
    const png = await noise(128);
    const sizes: number[] = [];
    for (const compression of [0, 30, 60, 100]) {
      sizes.push((await transcodeImage(png, "png", to, optionsOf({ compression }))).length);
    }
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect(new Set(sizes).size).toBe(4);
  });

  test("ignores compression for png", async () => {
    const webp = await sharp(await noise(64))
      .webp()
      .toBuffer();
    const [low, high] = await Promise.all(
      [0, 100].map((compression) => transcodeImage(webp, "webp", "png", optionsOf({ compression }))),
    );
    expect(low).toEqual(high);
  });

  test("turns the image as its metadata says, and leaves the metadata out", async () => {
    const turned = await sharp(await halfTransparent())
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const made = await transcodeImage(turned, "jpeg", "png", optionsOf());
    const metadata = await sharp(made).metadata();
    expect(metadata).toMatchObject({ width: 48, height: 64 });
    expect(metadata.exif).toBeUndefined();
  });
});

describe("transcoding refuses", () => {
  const failureOf = async (bytes: Uint8Array, from: ImageFormat, to: ImageFormat) => {
    const error = await transcodeImage(bytes, from, to, optionsOf()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProviderError);
    return error as ProviderError;
  };

  test("to draw markup, or to make markup of pixels", async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    const png = await halfTransparent();
    for (const format of rasters) {
      expect((await failureOf(svg, "svg", format)).kind).toBe("bad_answer");
      expect((await failureOf(png, format, "svg")).kind).toBe("bad_answer");
      expect([canTranscode("svg", format), canTranscode(format, "svg")]).toEqual([false, false]);
    }
    expect(await transcodeImage(svg, "svg", "svg", optionsOf())).toBe(svg);
    expect([canTranscode("svg", "svg"), canTranscode("gif", "png")]).toEqual([true, true]);
  });

  test("what is no image, or only part of one", async () => {
    const png = await noise(64);
    for (const bytes of [
      Buffer.from("nothing"),
      Buffer.alloc(0),
      png.subarray(0, 40),
      png.subarray(0, 4000),
    ]) {
      const error = await failureOf(bytes, "png", "webp");
      expect(error).toMatchObject({ kind: "bad_answer", message: "The image can't be decoded." });
    }
  });

  test("a bomb, before it is decoded", async () => {
    const black = { width: 12_000, height: 12_000, channels: 3, background: "#000" } as const;
    const bomb = await sharp({ create: black, limitInputPixels: false }).png().toBuffer();
    const run = vi.fn();
    const made = transcodeImage(bomb, "png", "jpeg", optionsOf({ room: { run } }));
    await expect(made).rejects.toMatchObject({ kind: "bad_answer" });
    expect(run).not.toHaveBeenCalled();
  });

  test("to go on once it is aborted", async () => {
    const reason = new Error("gone");
    const controller = new AbortController();
    const { signal } = controller;
    const room = new DecodeBudget().of("a key");
    const blocked = Promise.withResolvers<void>();
    const blocker = room.run(Number.MAX_SAFE_INTEGER, new AbortController().signal, () => blocked.promise);
    const waiting = transcodeImage(await noise(64), "png", "jpeg", optionsOf({ room, signal }));
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    blocked.resolve();
    await blocker;
  });
});
