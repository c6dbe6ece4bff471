import type { IncomingHttpHeaders } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Busboy } from "@fastify/busboy";
import { DomainError } from "../../lib/runtime/domain-error.ts";

/** A file of a form, as it came; its bytes are those of the body itself. */
export interface FormFile {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What a form holds, in its order. */
export interface FormBody {
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly files: readonly FormFile[];
}

const formType = /^multipart\/form-data[ \t]*;/i;

/** Bounds of one form; more than any operation has a use for. */
const limits = {
  fields: 64,
  files: 32,
  parts: 96,
  fieldSize: 512 * 1024,
  headerPairs: 16,
  headerSize: 8 * 1024,
};

/** Of a name that is said back, characters. */
const longestPath = 100;

/** What is parsed at a stretch, bytes: so few that a form of nothing but parts is refused before it has cost much. */
const sliceBytes = 16 * 1024;
/** How many of these until others get a turn. */
const slicesPerTurn = 32;

/** Whether a request says that its body is a form with files. */
export function isForm(headers: IncomingHttpHeaders): boolean {
  return formType.test(headers["content-type"] ?? "");
}

/**
 * The form (multipart/form-data, RFC 7578) that a body holds, without a copy of its files. Throws invalid_body when it is
 * none, is cut short, or holds more or longer parts than any form here has.
 */
export async function parseFormBody(body: Buffer, headers: IncomingHttpHeaders): Promise<FormBody> {
  if (!["", "identity"].includes(headers["content-encoding"] ?? "")) {
    throw invalidForm("a content encoding is not supported");
  }
  const parser = createParser(headers["content-type"] ?? "");
  const whole = Promise.withResolvers<void>();
  const fields: [string, string][] = [];
  const files: { name: string; chunks: Buffer[] }[] = [];
  let fault: DomainError | undefined;
  const refuse = (message: string, path = "") => {
    fault ??= invalidForm(message, path);
    whole.resolve();
  };
  parser.on("field", (name, value, _nameIsCut, valueIsCut) => {
    if (valueIsCut) refuse("is too long", name.slice(0, longestPath));
    else fields.push([name, value]);
  });
  parser.on("file", (name, stream) => {
    const chunks: Buffer[] = [];
    files.push({ name, chunks });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => refuse("the form ends too early"));
  });
  parser.on("fieldsLimit", () => refuse(`has more than ${limits.fields} fields`));
  parser.on("filesLimit", () => refuse(`has more than ${limits.files} files`));
  parser.on("partsLimit", () => refuse(`has more than ${limits.parts} parts`));
  parser.on("error", () => refuse("must be a whole multipart/form-data body"));
  parser.on("finish", whole.resolve);
  for (
    let start = 0, slices = 1;
    start < body.length && fault === undefined;
    start += sliceBytes, slices += 1
  ) {
    parser.write(body.subarray(start, start + sliceBytes));
    if (slices % slicesPerTurn === 0) await nextTurn();
  }
  if (fault === undefined) parser.end();
  await whole.promise;
  if (fault !== undefined) throw fault;
  return { fields, files: files.map(({ name, chunks }) => ({ name, bytes: joined(chunks) })) };
}

function createParser(contentType: string) {
  try {
    return new Busboy({ headers: { "content-type": contentType }, limits });
  } catch {
    throw invalidForm("the content type must name the boundary of the form");
  }
}

/** Chunks as one; without a copy where they follow each other in the memory of the body, as they nearly always do. */
function joined(chunks: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  const [first] = chunks;
  if (first === undefined) return new Uint8Array();
  let end = first.byteOffset;
  for (const { buffer, byteOffset, byteLength } of chunks) {
    if (buffer !== first.buffer || byteOffset !== end) return Buffer.concat(chunks);
    end += byteLength;
  }
  return new Uint8Array(first.buffer as ArrayBuffer, first.byteOffset, end - first.byteOffset);
}

function invalidForm(message: string, path = ""): DomainError {
  return DomainError.invalid([{ path, message }]);
}
