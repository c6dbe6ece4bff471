/** One file of a form. */
export interface FormFile {
  readonly name: string;
  readonly fileName: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** A form on the wire. */
export interface EncodedForm {
  readonly contentType: string;
  /** The files' bytes are among the pieces as they are. */
  readonly body: readonly Uint8Array[];
}

/**
 * Encodes multipart/form-data (RFC 7578; names escaped as WHATWG HTML has it) without copying its files. No part may
 * contain `boundary`: take a random one, of letters and digits.
 */
export function encodeMultipart(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
  boundary: string,
): EncodedForm {
  const start = (name: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(name)}"`;
  const body: Uint8Array[] = [];
  let text = fields.map(([name, value]) => `${start(name)}\r\n\r\n${value}\r\n`).join("");
  for (const { name, fileName, mediaType, bytes } of files) {
    text += `${start(name)}; filename="${escapeName(fileName)}"\r\ncontent-type: ${mediaType}\r\n\r\n`;
    body.push(Buffer.from(text), bytes);
    text = "\r\n";
  }
  body.push(Buffer.from(`${text}--${boundary}--\r\n`));
  return { contentType: `multipart/form-data; boundary=${boundary}`, body };
}

function escapeName(name: string): string {
  return name.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
}
