import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { type ImageType, sniffImageType } from "./image-type.ts";

const text = (content: string) => Buffer.from(content);

describe("the type of an image", () => {
  test.for(["png", "jpeg", "webp", "gif"] as const)("is seen in a real %s", async (type) => {
    const image = sharp({ create: { width: 3, height: 2, channels: 4, background: "#0808" } });
    expect(sniffImageType(await image.toFormat(type).toBuffer())).toBe(type);
  });

  test.for([
    "<svg/>",
    "<svg>",
    '<svg xmlns="http://www.w3.org/2000/svg">',
    "\n\t <svg\nviewBox='0 0 1 1'>",
    "\ufeff<svg>",
    '<?xml version="1.0" encoding="UTF-8"?>\n<svg>',
    "\ufeff <?xml version='1.0'?><!-- drawn by < hand > --><!-- twice -->\n<svg>",
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"><svg>',
  ])("is svg for %j", (markup) => {
    expect(sniffImageType(text(markup))).toBe("svg");
  });

  test.for<[string, Buffer]>([
    ["nothing", text("")],
    ["words", text("a picture of an <svg>")],
    ["a page", text("<!DOCTYPE html><html><svg></svg></html>")],
    ["another element", text("<svgx>")],
    ["a comment alone", text("<!-- <svg> -->")],
    ["an open comment", text("<!-- <svg>")],
    ["a document type with entities", text('<!DOCTYPE svg [<!ENTITY x "y">]><svg>')],
    ["an SVG behind a long preface", text(`${" ".repeat(5000)}<svg>`)],
    ["half of a PNG signature", text("\x89PNG")],
    ["a PNG signature spoilt as text", text("\x89PNG\r\n\x1a\n")],
    ["a sound in a RIFF file", text("RIFF\0\0\0\0WAVEfmt ")],
    ["a bitmap", text("BM\0\0\0\0")],
    ["a TIFF", text("II*\0\0\0\0\0")],
    ["a PDF", text("%PDF-1.7")],
    ["an AVIF", text("\0\0\0\x20ftypavif")],
  ])("is unknown for %s", ([, bytes]) => {
    expect(sniffImageType(bytes)).toBeUndefined();
  });

  test("is recognized by the bytes of the view, not of what lies around it", () => {
    const around = Buffer.concat([text("GIF89a"), text("<svg>"), text("GIF89a")]);
    expect(sniffImageType(around.subarray(6, 11))).toBe("svg");
    expect(sniffImageType(around.subarray(11))).toBe("gif");
    expect(sniffImageType(around.subarray(6, 9))).toBeUndefined();
  });

  test("is looked for in any bytes without throwing", () => {
    const starts: [ImageType | undefined, Buffer][] = [
      ["png", Buffer.from("\x89PNG\r\n\x1a\n", "latin1")],
      ["jpeg", Buffer.from("\xff\xd8\xff", "latin1")],
      ["gif", text("GIF87a")],
      ["svg", text("<svg ")],
      [undefined, text("\0")],
    ];
    fc.assert(
      fc.property(fc.constantFrom(...starts), fc.uint8Array(), ([type, start], rest) => {
        expect(sniffImageType(Buffer.concat([start, rest]))).toBe(type);
      }),
    );
  });
});
