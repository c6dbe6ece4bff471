import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { testKeys } from "../test/support/gateway-server.ts";
import { type PlaceSchema, worstBodies } from "../test/support/worst-bodies.ts";
import type { Probe } from "./worst-bodies-target.ts";

/** Something that takes bodies: an operation of the REST interface, or an RPC. */
interface Door {
  readonly name: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What its bodies are like, and the least of them. */
  readonly schema: PlaceSchema;
  readonly least: object;
  /** The longest body to begin with; halved until it is not refused for its length. */
  readonly maxBytes: number;
}

interface Operation {
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { schema: { $ref: string }; examples: Record<string, { value: object }> }>
    >;
  };
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, PlaceSchema>> };
}

const mebibyte = 1 << 20;
const { values } = parseArgs({
  options: { door: { type: "string" }, body: { type: "string" }, mib: { type: "string", default: "32" } },
});
const maxBytes = Number(values.mib) * mebibyte;
/** What no body may take of the loop at a stretch, and of memory beyond itself. */
const mostTurnMs = 50;
const mostGrownBytes = (bodyBytes: number) => 5 * bodyBytes + 2 * mebibyte;
const jsonType = "application/json";

/** Every operation of the REST interface that takes JSON, by its own document. */
async function restDoors(baseUrl: string): Promise<readonly Door[]> {
  const document = (await (await fetch(`${baseUrl}/api/v1/openapi.json`)).json()) as OpenApi;
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const content = requestBody?.content[jsonType];
      if (content === undefined) return [];
      const schema = document.components.schemas[content.schema.$ref.split("/").at(-1) ?? ""] ?? {};
      const least = Object.values(content.examples)[0]?.value ?? {};
      const url = `${baseUrl}/api/v1${path.replace(/\{\w+\}/g, "ab".repeat(32))}`;
      const headers = { authorization: `Bearer ${keyFor(path)}`, "content-type": jsonType };
      return [{ name: `${method.toUpperCase()} ${path}`, method, url, headers, schema, least, maxBytes }];
    }),
  );
}

function keyFor(path: string): string {
  if (path.startsWith("/audio")) return testKeys.speech;
  return path.startsWith("/images") ? testKeys.images : testKeys.management;
}

interface Row extends Probe {
  readonly door: string;
  readonly body: string;
  readonly bytes: number;
  readonly status: number;
}

async function post({ url, method, headers }: Door, body: Buffer) {
  const response = await fetch(url, { method: method.toUpperCase(), headers, body: new Uint8Array(body) });
  return { status: response.status, text: await response.text() };
}

async function measure(target: ChildProcess, door: Door, name: string, body: Buffer): Promise<Row> {
  const ask = async (message: string) => {
    target.send(message);
    const [answer] = (await once(target, "message")) as [Probe];
    return answer;
  };
  await ask("turns");
  const { status } = await post(door, body);
  const { longestTurnMs } = await ask("end");
  await ask("memory");
  await post(door, body);
  const { grownBytes } = await ask("end");
  return { longestTurnMs, grownBytes, door: door.name, body: name, bytes: body.length, status };
}

/** The longest body that a door takes, within a factor of two. */
async function longestOf(door: Door): Promise<number> {
  for (let bytes = door.maxBytes; bytes > 1; bytes /= 2) {
    const { text } = await post(
      door,
      Buffer.from(JSON.stringify({ ...door.least, zz: "x".repeat(bytes - 512) })),
    );
    if (!text.includes("body_too_large")) return bytes;
  }
  throw new Error(`${door.name} takes no body`);
}

function tell(rows: readonly Row[]): void {
  const mib = (bytes: number) => (bytes / mebibyte).toFixed(1);
  for (const row of rows) {
    const isWithin = row.longestTurnMs <= mostTurnMs && row.grownBytes <= mostGrownBytes(row.bytes);
    const cells = [`${row.longestTurnMs.toFixed(1)} ms`, `${mib(row.grownBytes - row.bytes)} MiB`];
    console.log(
      `${isWithin ? " " : "!"} ${row.door} | ${row.body} | ${mib(row.bytes)} MiB | ${row.status} | ${cells.join(" | ")}`,
    );
  }
}

const target = fork(new URL("worst-bodies-target.ts", import.meta.url), {
  // A small young generation: garbage that V8 would leave lying is not what a body takes.
  execArgv: ["--expose-gc", "--max-semi-space-size=1"],
});
const [baseUrl] = (await once(target, "message")) as [string];
const doors = [...(await restDoors(baseUrl))].filter(({ name }) => name.includes(values.door ?? ""));
console.log("  door | body | size | status | longest turn | memory beyond the body");
for (const door of doors) {
  const bytes = await longestOf(door);
  const bodies = worstBodies(door.schema, door.least).filter(({ name }) => name.includes(values.body ?? ""));
  const rows: Row[] = [];
  for (const { name, make } of bodies) rows.push(await measure(target, door, name, make(bytes)));
  tell(rows.sort((a, b) => b.longestTurnMs - a.longestTurnMs));
}
target.disconnect();
