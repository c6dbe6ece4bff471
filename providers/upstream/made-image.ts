import { mediaTypes } from "../../lib/http/image-type.ts";
import type { ImageOutput } from "../contract.ts";
import { imageOutput } from "./image-answer.ts";

/** Chunks of a PNG that hold words: programs that draw write there how, with the names of models and whole workflows. */
const wordChunks: ReadonlySet<string> = new Set(["tEXt", "zTXt", "iTXt", "eXIf"]);
const pngSignatureBytes = 8;
const chunkFrameBytes = 12;

/** A whole image that an operator's own server made, without what it wrote into it. Throws ProviderError. */
export function madeImage(bytes: Uint8Array): ImageOutput & { kind: "image" } {
  const image = imageOutput(bytes);
  return image.mediaType === mediaTypes.png ? { ...image, bytes: withoutWords(bytes) } : image;
}

/** What can't be walked to its end is left as it is. */
function withoutWords(bytes: Uint8Array): Uint8Array {
  const png = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kept = [png.subarray(0, pngSignatureBytes)];
  let at = pngSignatureBytes;
  while (at + chunkFrameBytes <= png.length) {
    const end = at + chunkFrameBytes + png.readUInt32BE(at);
    if (!wordChunks.has(png.toString("latin1", at + 4, at + 8))) kept.push(png.subarray(at, end));
    at = end;
  }
  return at === png.length ? Buffer.concat(kept) : bytes;
}
