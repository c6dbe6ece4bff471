/** The media types of the encodings of images that are recognized by their bytes. */
export const mediaTypes = {
  png: "image/png",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  svg: "image/svg+xml",
} as const;

/** One of these encodings. */
export type ImageType = keyof typeof mediaTypes;

/** How much of a text is looked at to find the root element of an SVG, bytes. */
const longestProlog = 4096;
/** XML declaration, comments and document type, each with the blanks before it. */
const prologPart = /^\s*(?:<\?xml[^>]*\?>|<!--[\s\S]*?-->|<!DOCTYPE\s[^>[]*>)/;

/** What the first bytes of an image say that it is; undefined when it is none of these. Says nothing about the rest. */
export function sniffImageType(bytes: Uint8Array): ImageType | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, longestProlog));
  const magic = head.toString("latin1", 0, 12);
  if (magic.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (magic.startsWith("\xff\xd8\xff")) return "jpeg";
  if (magic.startsWith("RIFF") && magic.endsWith("WEBP")) return "webp";
  if (magic.startsWith("GIF87a") || magic.startsWith("GIF89a")) return "gif";
  return startsSvg(head.toString("utf8")) ? "svg" : undefined;
}

function startsSvg(text: string): boolean {
  let rest = text.replace(/^\ufeff/, "");
  for (let part = prologPart.exec(rest); part !== null; part = prologPart.exec(rest)) {
    rest = rest.slice(part[0].length);
  }
  return /^\s*<svg[\s/>]/.test(rest);
}
