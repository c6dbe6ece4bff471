import { crc32 } from "node:zlib";
import sharp, { type Sharp } from "sharp";
import { describe, expect, test } from "vitest";
import { readImageHeader } from "./read-image-header.ts";

const mebibyte = 1024 * 1024;

function noise(width: number, height: number, channels: 3 | 4 = 3) {
  return sharp({
    create: {
      width,
      height,
      channels,
      background: { r: 1, g: 2, b: 3, alpha: 0.5 },
      noise: { type: "gaussian", mean: 128, sigma: 50 },
    },
  });
}

async function chunk(type: string, data: Uint8Array): Promise<Buffer> {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length);
  frame.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)]);
}

const afterPngHeader = 33;

/** A PNG with further chunks before its data. */
async function pngWith(...chunks: readonly Buffer[]): Promise<Buffer> {
  const png = await noise(9, 9).png().toBuffer();
  return Buffer.concat([png.subarray(0, afterPngHeader), ...chunks, png.subarray(afterPngHeader)]);
}

/** Where each scan of a JPEG begins. */
function scansOf(jpeg: Buffer): number[] {
  const found: number[] = [];
  for (let at = jpeg.indexOf("ffda", 0, "hex"); at >= 0; at = jpeg.indexOf("ffda", at + 1, "hex"))
    found.push(at);
  return found;
}

describe("the header of an image", () => {
  test.for<[string, (image: Sharp) => Sharp]>([
    ["PNG", (image) => image.png()],
    ["PNG, interlaced", (image) => image.png({ progressive: true })],
    ["PNG with a palette", (image) => image.png({ palette: true })],
    ["PNG of 16 bits", (image) => image.toColourspace("rgb16").png()],
    ["grey PNG", (image) => image.toColourspace("b-w").png()],
    ["JPEG", (image) => image.jpeg()],
    ["JPEG with whole colours", (image) => image.jpeg({ chromaSubsampling: "4:4:4" })],
    ["JPEG, progressive", (image) => image.jpeg({ progressive: true })],
    ["JPEG of four colours", (image) => image.toColourspace("cmyk").jpeg()],
    ["JPEG with EXIF and a profile", (image) => image.withMetadata({ density: 99 }).jpeg()],
    ["WebP", (image) => image.webp()],
    ["WebP, lossless", (image) => image.webp({ lossless: true })],
    ["WebP with metadata", (image) => image.withMetadata({ density: 99 }).webp()],
    ["GIF", (image) => image.gif()],
  ])("of a %s has the size that decoding it gives", async ([, encode]) => {
    for (const channels of [3, 4] as const) {
      for (const [width, height] of [
        [1, 1],
        [37, 91],
        [640, 7],
      ] as const) {
        const bytes = await encode(noise(width, height, channels)).toBuffer();
        expect(readImageHeader(bytes)).toMatchObject({ width, height, animated: false });
        expect(readImageHeader(new Uint8Array(bytes))).toMatchObject({ width, height });
      }
    }
  });

  test("distinguishes what must be held as a whole from what is read in rows", async () => {
    const mebibytes = async (image: Sharp) =>
      Math.round((readImageHeader(await image.toBuffer())?.decodedBytes ?? 0) / mebibyte);
    const large = () => sharp({ create: { width: 4096, height: 2048, channels: 4, background: "#8888" } });
    expect(await mebibytes(large().png())).toBeLessThan(16);
    expect(await mebibytes(large().jpeg())).toBeLessThan(16);
    // 8 Mi pixels of four channels, of one byte and of two.
    expect(await mebibytes(large().png({ progressive: true }))).toBeGreaterThanOrEqual(32);
    expect(await mebibytes(large().toColourspace("rgb16").png({ progressive: true }))).toBeGreaterThanOrEqual(
      64,
    );
    // Two bytes a coefficient, of three whole components, and of one whole and two quarters.
    expect(
      await mebibytes(large().jpeg({ progressive: true, chromaSubsampling: "4:4:4" })),
    ).toBeGreaterThanOrEqual(48);
    expect(await mebibytes(large().jpeg({ progressive: true }))).toBeGreaterThanOrEqual(24);
    expect(await mebibytes(large().webp({ lossless: true }))).toBeGreaterThanOrEqual(40);
  });

  test("counts what texts and other metadata become when they are unpacked", async () => {
    const plain = readImageHeader(await pngWith())?.decodedBytes ?? 0;
    const priceOf = async (...chunks: Buffer[]) =>
      (readImageHeader(await pngWith(...chunks))?.decodedBytes ?? 0) - plain;
    const packed = Buffer.alloc(9000);
    for (const type of ["zTXt", "iTXt", "iCCP"]) {
      expect(await priceOf(await chunk(type, packed))).toBeGreaterThan(1000 * packed.length);
    }
    expect(await priceOf(await chunk("eXIf", packed))).toBe(6 * packed.length);
    const many = Array.from({ length: 1000 }, () => chunk("zTXt", packed));
    expect(await priceOf(...(await Promise.all(many)))).toBeLessThan(100 * mebibyte);
  });

  test("is refused with more pieces than any image has", async () => {
    const empty = await chunk("tEXt", new Uint8Array());
    const many = Buffer.concat(Array.from({ length: 70_000 }, () => empty));
    const png = await pngWith(many);
    expect(() => readImageHeader(png)).toThrow("has more than 65536 chunks");
    const jpeg = await noise(9, 9).jpeg().toBuffer();
    const comments = Buffer.from("fffe0002".repeat(5000), "hex");
    const commented = Buffer.concat([jpeg.subarray(0, 2), comments, jpeg.subarray(2)]);
    expect(() => readImageHeader(commented)).toThrow("has more than 4096 segments");
    const webp = await noise(9, 9).webp().toBuffer();
    const padded = Buffer.concat([webp, Buffer.from("XXXX\0\0\0\0".repeat(2000), "latin1")]);
    expect(() => readImageHeader(padded)).toThrow("has more than 1024 chunks");
  });

  test("is refused with more scans than any image has, wherever they are and only then", async () => {
    const jpeg = await noise(64, 64).jpeg({ progressive: true }).toBuffer();
    const starts = scansOf(jpeg);
    expect(starts.length).toBeGreaterThan(4);
    const last = jpeg.subarray(starts.at(-1), -2);
    const withScans = (times: number, between = Buffer.alloc(0)) => {
      const more = Array.from({ length: times }, () => Buffer.concat([between, last]));
      return Buffer.concat([jpeg.subarray(0, -2), ...more, jpeg.subarray(-2)]);
    };
    const fitting = 64 - starts.length;
    // What looks like the image's end within a comment is none.
    for (const between of [Buffer.alloc(0), Buffer.from("fffe0006ffd9ffda", "hex")]) {
      expect(readImageHeader(withScans(fitting, between))).toMatchObject({ width: 64 });
      expect(() => readImageHeader(withScans(fitting + 1, between))).toThrow("has more than 64 scans");
    }
    // What follows the end, such as the film of a moving photo, is not looked at.
    const followed = Buffer.concat([jpeg, Buffer.from("ffda0002".repeat(1000), "hex")]);
    expect(readImageHeader(followed)).toMatchObject({ width: 64 });
  });

  test("is none where the image is cut within it, or is of a rare kind", async () => {
    const jpeg = await noise(9, 9).jpeg().toBuffer();
    const [scan = 0] = scansOf(jpeg);
    for (const length of [3, 10, scan]) expect(readImageHeader(jpeg.subarray(0, length))).toBeUndefined();
    const frame = jpeg.indexOf("ffc0", 0, "hex");
    for (const kind of [0xc3, 0xc5, 0xc9, 0xca, 0xcf]) {
      const rare = Buffer.from(jpeg);
      rare[frame + 1] = kind;
      expect(readImageHeader(rare)).toBeUndefined();
    }
    const png = await noise(9, 9).png().toBuffer();
    expect(readImageHeader(png.subarray(0, 20))).toBeUndefined();
    const webp = await noise(9, 9).webp().toBuffer();
    expect(readImageHeader(webp.subarray(0, 20))).toBeUndefined();
    expect(readImageHeader(Buffer.from("words"))).toBeUndefined();
  });
});
