import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { ProviderError } from "../../providers/contract.ts";
import { FakePainter, image, imageEndpoint } from "../../test/fakes/fake-image.ts";
import { imageDependencies, imageRequest } from "../../test/fakes/image-scene.ts";
import { beginDrawing } from "./drawing.ts";
import type { ImageRequest } from "./image-request.ts";

/** What a client gets of an upstream that makes `formats` and gives `bytes`. */
async function draw(
  formats: readonly ImageRequest["format"][],
  bytes: Uint8Array,
  asked: Partial<ImageRequest>,
) {
  const painter = new FakePainter({ output: [image(bytes, "image/unknown")] });
  const drawing = await beginDrawing(
    imageEndpoint({ image: { formats } }),
    imageRequest(asked),
    { references: [] },
    imageDependencies({ acme: painter }),
    { signal: new AbortController().signal, onSent: () => undefined, startByMs: 0 },
  );
  const { value } = await drawing.outputs.next();
  if (value?.kind !== "image") throw new Error("no image");
  return { asked: painter.seen[0]?.call.format, mediaType: value.mediaType, bytes: value.bytes };
}

const square = (alpha: number) =>
  sharp({ create: { width: 32, height: 16, channels: 4, background: { r: 200, g: 40, b: 90, alpha } } });
const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>');

describe("an image", () => {
  test("in the encoding that was asked for goes on as it is", async () => {
    const bytes = await square(1).webp().toBuffer();
    const drawn = await draw(["webp"], bytes, { format: "webp" });
    expect(drawn).toEqual({ asked: "webp", mediaType: "image/webp", bytes });
    expect(drawn.bytes.buffer).toBe(bytes.buffer);
  });

  test.for(["jpeg", "webp", "png"] as const)(
    "that the upstream can't make as %s is made into that here",
    async (format) => {
      const native = format === "png" ? "webp" : "png";
      const bytes = await square(1)[native]().toBuffer();
      const drawn = await draw([native], bytes, { format });
      expect([drawn.asked, drawn.mediaType]).toEqual([native, `image/${format}`]);
      expect(await sharp(drawn.bytes).metadata()).toMatchObject({ format, width: 32, height: 16 });
    },
  );

  test("stays transparent", async () => {
    const bytes = await square(0).png().toBuffer();
    const drawn = await draw(["png"], bytes, { format: "webp", background: "transparent" });
    const { channels } = await sharp(drawn.bytes).stats();
    expect(channels[3]?.max).toBe(0);
  });

  test("is smaller with more compression", async () => {
    const noise = Buffer.from(Array.from({ length: 64 * 64 * 3 }, (_, at) => (at * 7919) % 251));
    const bytes = await sharp(noise, { raw: { width: 64, height: 64, channels: 3 } })
      .png()
      .toBuffer();
    const sizeAt = async (compression: number) =>
      (await draw(["png"], bytes, { format: "jpeg", compression })).bytes.length;
    expect(await sizeAt(10)).toBeLessThan(await sizeAt(95));
  });

  test("that comes in another encoding than the upstream promised is made into what was asked for", async () => {
    const bytes = await square(1).jpeg().toBuffer();
    const drawn = await draw(["png", "jpeg"], bytes, { format: "png" });
    expect(drawn).toMatchObject({ asked: "png", mediaType: "image/png" });
    expect(await sharp(drawn.bytes).metadata()).toMatchObject({ format: "png" });
  });

  test("of markup goes on as it is where markup was asked for", async () => {
    expect(await draw(["svg"], svg, { format: "svg" })).toEqual({
      asked: "svg",
      mediaType: "image/svg+xml",
      bytes: svg,
    });
  });

  test.for<[string, readonly ImageRequest["format"][], Uint8Array, ImageRequest["format"]]>([
    ["markup for pixels", ["png"], svg, "png"],
    ["pixels for markup", ["svg"], Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), "svg"],
    ["damaged pixels", ["png"], Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), "jpeg"],
    ["no image", ["png"], Buffer.from("hello"), "png"],
  ])("is a bad answer when it is %s", async ([, formats, bytes, format]) => {
    const drawn = draw(formats, bytes, { format });
    await expect(drawn).rejects.toBeInstanceOf(ProviderError);
    await expect(drawn).rejects.toMatchObject({ kind: "bad_answer" });
  });
});
