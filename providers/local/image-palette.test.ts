import { converter } from "culori";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { paletteOf } from "./image-palette.ts";

const toLab = converter("oklab");

async function plain(color: string, width = 60, height = 40): Promise<Buffer> {
  return sharp({ create: { width, height, channels: 3, background: color } })
    .png()
    .toBuffer();
}

describe("paletteOf", () => {
  it("finds the colour of a plain image", async () => {
    const [only, ...others] = await paletteOf([await plain("#c02040")]);
    expect(others).toEqual([]);
    expect(only?.share).toBe(1);
    const asked = toLab("#c02040");
    for (const axis of ["l", "a", "b"] as const) expect(only?.[axis]).toBeCloseTo(asked?.[axis] ?? 0, 2);
  });

  it("finds the parts of all images together", async () => {
    const colors = await paletteOf([await plain("#ff0000"), await plain("#0000ff"), await plain("#0000ff")]);
    const blue = colors.find(({ b }) => b < -0.2);
    const red = colors.find(({ a }) => a > 0.2);
    expect(blue?.share).toBeCloseTo(2 / 3, 1);
    expect(red?.share).toBeCloseTo(1 / 3, 1);
  });

  it("leaves out what is transparent", async () => {
    const clear = await sharp({ create: { width: 20, height: 20, channels: 4, background: "#00000000" } })
      .webp()
      .toBuffer();
    expect(await paletteOf([clear])).toEqual([]);
  });

  it("reads the formats of references and no other", async () => {
    const jpeg = await sharp(await plain("#208040"))
      .jpeg()
      .toBuffer();
    expect((await paletteOf([jpeg])).length).toBeGreaterThan(0);
    const gif = await sharp(await plain("#208040"))
      .gif()
      .toBuffer();
    await expect(paletteOf([gif])).rejects.toThrow();
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    await expect(paletteOf([svg])).rejects.toThrow();
  });

  it("refuses garbage, what was cut off, and what is far too large", async () => {
    const png = await sharp({
      create: {
        width: 300,
        height: 300,
        channels: 3,
        background: "#123456",
        noise: { type: "gaussian", mean: 128, sigma: 30 },
      },
    })
      .png()
      .toBuffer();
    await expect(paletteOf([Buffer.from("no image")])).rejects.toThrow();
    await expect(paletteOf([png.subarray(0, png.length / 2)])).rejects.toThrow();
    await expect(paletteOf([await plain("#000000", 9_000, 9_000)])).rejects.toThrow(/limit/);
  });
});
