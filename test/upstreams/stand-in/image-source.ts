/** Real images of any size in pixels and, where that is asked for, in bytes: for stand-in upstreams. */
import { crc32 } from "node:zlib";
import sharp from "sharp";
import { createAudioSource, firstBytes } from "./audio-source.ts";

/** What an image has to be. */
export interface SourceImage {
  readonly format: "png" | "jpeg" | "webp";
  readonly width: number;
  readonly height: number;
  /** Half transparent; opaque otherwise. */
  readonly isTransparent: boolean;
  /** Its grey, 0 to 255: tells images apart. */
  readonly shade: number;
  /** Its length to the byte (even for webp); at least what its pixels take. As it comes out where left out. */
  readonly bytes?: number;
}

/** Where a stand-in takes its images from; each is made once. */
export interface ImageSource {
  image(spec: SourceImage): Promise<Buffer>;
}

/** Makes a source. Images are of one colour; what they lack in length is noise in a part that readers skip. */
export function createImageSource(): ImageSource {
  const made = new Map<string, Promise<Buffer>>();
  const pcm = createAudioSource("pcm");
  return {
    image(spec) {
      const key = JSON.stringify(spec);
      const known = made.get(key);
      if (known !== undefined) return known;
      const image = draw(spec).then((drawn) => {
        const missing = (spec.bytes ?? drawn.length) - drawn.length;
        return missing === 0 ? drawn : pad(spec.format, drawn, (length) => firstBytes(pcm, length), missing);
      });
      made.set(key, image);
      return image;
    },
  };
}

function draw({ format, width, height, isTransparent, shade }: SourceImage): Promise<Buffer> {
  const background = { r: shade, g: shade, b: shade, alpha: isTransparent ? 0.5 : 1 };
  const canvas = { create: { width, height, channels: isTransparent ? 4 : 3, background } } as const;
  return sharp(canvas).toFormat(format).toBuffer();
}

type Noise = (length: number) => Buffer;

function pad(format: SourceImage["format"], image: Buffer, noise: Noise, missing: number): Buffer {
  if (format === "png") return padPng(image, noise, missing);
  return format === "jpeg" ? padJpeg(image, noise, missing) : padWebp(image, noise, missing);
}

/** A private chunk that may be skipped, before the last one. */
function padPng(image: Buffer, noise: Noise, missing: number): Buffer {
  const end = image.length - 12;
  const chunk = Buffer.alloc(8);
  chunk.writeUInt32BE(missing - 12);
  chunk.write("nsZe", 4, "latin1");
  const data = noise(missing - 12);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(data, crc32(chunk.subarray(4))));
  return Buffer.concat([image.subarray(0, end), chunk, data, sum, image.subarray(end)]);
}

/** Comments after the first marker, at most 65,535 bytes each with their length. */
function padJpeg(image: Buffer, noise: Noise, missing: number): Buffer {
  const segments: Buffer[] = [];
  for (let left = missing; left > 0; ) {
    // What is left over must hold a marker and its length again.
    const size = left <= 65_537 ? left : Math.min(65_537, left - 4);
    const head = Buffer.from([0xff, 0xfe, (size - 2) >> 8, (size - 2) & 0xff]);
    segments.push(head, noise(size - 4));
    left -= size;
  }
  return Buffer.concat([image.subarray(0, 2), ...segments, image.subarray(2)]);
}

/** A chunk of an unknown kind at the end. */
function padWebp(image: Buffer, noise: Noise, missing: number): Buffer {
  const chunk = Buffer.alloc(8);
  chunk.write("nsZe", "latin1");
  chunk.writeUInt32LE(missing - 8, 4);
  const padded = Buffer.concat([image, chunk, noise(missing - 8)]);
  padded.writeUInt32LE(padded.length - 8, 4);
  return padded;
}
