/**
 * Stand-ins for servers that speak OpenAI's dialect each in its own way: what differs between them is said by a
 * CompatibleServer (compatible-servers.ts); what a request asks of them is checked as strictly as they do.
 */
import { createAudioSource, firstBytes } from "../stand-in/audio-source.ts";
import { createImageSource } from "../stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "../stand-in/stand-in-server.ts";

/** What a server refuses with: its status, and its own words for a body. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** The body of a request; of a form its fields, with files as they came. */
export type Fields = Readonly<Record<string, unknown>>;

/** An operation of a server. */
export interface Operation {
  /** What is wrong with a request; undefined: nothing. */
  check(body: Fields, request: ReceivedRequest): Refusal | undefined;
  answer(body: Fields, answer: StandInAnswer, baseUrl: string): Promise<void>;
}

/** How a server differs from the others. */
export interface CompatibleServer {
  /** The header that a key stands in, with its whole value; undefined: any request is served. */
  readonly key?: { readonly header: string; readonly value: string };
  /** Whether it wants the key; one that is optional must still be right. */
  readonly keyIsOptional?: boolean;
  /** Query parameters that every request must have. */
  readonly query?: Readonly<Record<string, string>>;
  /** The body of a refusal. */
  error(refusal: Refusal): unknown;
  /** By method and path. */
  readonly operations: Readonly<Record<string, Operation>>;
}

/** Starts one on the loopback. */
export async function startCompatibleServer(server: CompatibleServer): Promise<StandIn> {
  let baseUrl = "";
  const standIn = await startStandIn(async (request, answer) => {
    const url = new URL(request.path, baseUrl);
    const refuse = (refusal: Refusal) => sendJson(answer, server.error(refusal), refusal.status);
    const files = images.get(`${request.method} ${url.pathname}`);
    if (files !== undefined) return answerBytes(answer, "image/png", await files());
    const operation = server.operations[`${request.method} ${url.pathname}`];
    if (operation === undefined) return refuse({ status: 404, message: `No route ${url.pathname}` });
    const refusal = refuseRequest(server, request, url);
    if (refusal !== undefined) return refuse(refusal);
    const body = await fieldsOf(request);
    const fault = operation.check(body, request);
    if (fault !== undefined) return refuse(fault);
    await operation.answer(body, answer, baseUrl);
  });
  baseUrl = standIn.baseUrl;
  return standIn;
}

function refuseRequest(
  { key, keyIsOptional, query = {} }: CompatibleServer,
  { headers }: ReceivedRequest,
  url: URL,
): Refusal | undefined {
  const given = key && headers[key.header];
  const isMissing = given === undefined && keyIsOptional !== true;
  if (key !== undefined && given !== key.value && (isMissing || given !== undefined)) {
    return { status: 401, message: `Wrong key: ${String(given)}` };
  }
  const missing = Object.entries(query).find(([name, value]) => url.searchParams.get(name) !== value);
  return missing && { status: 404, message: `Resource not found: ${missing[0]}` };
}

async function fieldsOf({ headers, json, bytes }: ReceivedRequest): Promise<Fields> {
  const contentType = headers["content-type"] ?? "";
  if (!contentType.startsWith("multipart/")) return (json ?? {}) as Fields;
  return Object.fromEntries(
    await new Response(bytes, { headers: { "content-type": contentType } }).formData(),
  );
}

/** Answers with JSON. */
export function sendJson(answer: StandInAnswer, body: unknown, status = 200): void {
  answer.send(status, { "content-type": "application/json" }, JSON.stringify(body));
}

function answerBytes(answer: StandInAnswer, contentType: string, bytes: Uint8Array): void {
  answer.start(200, { "content-type": contentType, "content-length": String(bytes.length) });
  answer.end(bytes);
}

/** What every stand-in speaks: samples of noise, or frames of mp3. */
export const speechOf = {
  pcm: firstBytes(createAudioSource("pcm"), 48_000),
  mp3: firstBytes(createAudioSource("mp3"), 4_800),
} as const;

const pieceBytes = 6_000;

/** Sends audio in pieces as it is made. */
export async function streamAudio(
  answer: StandInAnswer,
  bytes: Uint8Array,
  contentType: string,
  headers: Record<string, string> = {},
): Promise<void> {
  answer.start(200, { "content-type": contentType, "transfer-encoding": "chunked", ...headers });
  for (let at = 0; at < bytes.length; at += pieceBytes)
    await answer.write(bytes.subarray(at, at + pieceBytes));
  answer.end();
}

/** A wav as it is streamed: a header that knows no length, then samples of one channel. */
export function streamedWav(samples: Uint8Array, sampleRateHz: number): Buffer {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(0xffff_ffff, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(2 * sampleRateHz, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(0xffff_ffff, 40);
  return Buffer.concat([header, samples]);
}

/** Sends audio as events: `chunk` makes each of base64, `last` are the data of those after it. */
export async function streamEvents(
  answer: StandInAnswer,
  bytes: Buffer,
  chunk: (base64: string) => object,
  last: readonly string[],
): Promise<void> {
  answer.start(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" });
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const base64 = bytes.subarray(at, at + pieceBytes).toString("base64");
    await answer.write(`data: ${JSON.stringify(chunk(base64))}\n\n`);
  }
  for (const data of last) await answer.write(`data: ${data}\n\n`);
  answer.end();
}

const source = createImageSource();

/** A PNG of a size, "512x512", and a grey that tells it from others. */
export function imageOf(size: string, shade = 100): Promise<Buffer> {
  const [width = 64, height = 64] = size.split("x").map(Number);
  return source.image({ format: "png", width, height, isTransparent: false, shade });
}

/** Where stand-ins that answer with addresses keep their images. */
export const imagePath = "/generated-images/one.png";
const images = new Map([[`GET ${imagePath}`, () => imageOf("512x512")]]);
