import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectUnharmed, printDamages, startTarget, type Target, underAttack } from "./target.ts";
import { type PlaceSchema, worstBodies } from "./worst-bodies.ts";

interface Operation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, BodyDocument>> };
}

interface BodyDocument {
  readonly schema: { readonly $ref: string };
  readonly examples?: Readonly<Record<string, { readonly value: object }>>;
}

interface Door {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly isGenerating: boolean;
  readonly schema: PlaceSchema;
  readonly least: object;
}

/** Of the bodies that are made from a schema; each field of each operation has a dozen. */
const eachBytes = 512 << 10;
/** Under what any operation takes, and what none has a use for. */
const largestBytes = 30_000_000;
/** What no schema accepts, and what the largest that is accepted once did harm with. */
const repros = {
  "a list of numbers as references": () => `{"input_references":[${"1,".repeat(largestBytes / 2)}1]}`,
  "lists in a member that nobody knows": () => `{"zz":[${"[],".repeat(largestBytes / 3)}[]]}`,
  depth: () => "[".repeat(largestBytes),
  "members without end": () => `{${'"a":1,'.repeat(largestBytes / 6)}"a":1}`,
  "one text of escapes": () => `{"prompt":"${"\\u0041".repeat(largestBytes / 6)}"}`,
} as const;

let target: Target;
let doors: readonly Door[] = [];

beforeAll(async () => {
  target = await startTarget();
  doors = await listDoors();
}, 120_000);

afterAll(async () => {
  printDamages("bodies of the REST interface");
  await target?.close();
});

test("every operation with a body takes part", () => {
  expect(doors.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["POST /images", "POST /audio/speech", "POST /keys"]),
  );
});

test("the worst bodies of every operation hold nobody up", async () => {
  for (const door of doors) {
    const bugs: string[] = [];
    const damage = await underAttack(target, `${door.name}, worst bodies`, async () => {
      for (const { name, make } of worstBodies(door.schema, door.least)) {
        const status = await send(door, make(eachBytes));
        if (status === 500 || status === 0) bugs.push(`${door.name}, ${name}: ${status}`);
      }
    });
    expect(bugs).toEqual([]);
    expectUnharmed(damage);
  }
}, 600_000);

describe("a body as large as may be", () => {
  test.for(Object.entries(repros))("of %s is refused and holds nobody up", async ([name, text]) => {
    const body = Buffer.from(text());
    const statuses: number[] = [];
    const damage = await underAttack(target, `30 MB: ${name}`, async () => {
      for (const door of doors) statuses.push(await send(door, body));
    });
    expect(statuses.filter((status) => status !== 400 && status !== 413 && status !== 404)).toEqual([]);
    expectUnharmed(damage);
  });
});

/** The status; what is refused before it has been sent may end its connection, which is 400 as well. */
async function send({ method, path, isGenerating }: Door, body: Buffer): Promise<number> {
  const { baseUrl, inferenceKey, managementKey } = target;
  const headers = {
    authorization: `Bearer ${isGenerating ? inferenceKey : managementKey}`,
    "content-type": "application/json",
  };
  try {
    const response = await fetch(`${baseUrl}/api/v1${path}`, { method, headers, body: new Uint8Array(body) });
    await response.arrayBuffer();
    return response.status;
  } catch (thrown) {
    const { code } = ((thrown as Error).cause ?? {}) as { code?: string };
    return code === "EPIPE" || code === "ECONNRESET" || code === "UND_ERR_SOCKET" ? 400 : 0;
  }
}

/** The operations that the interface's own document says take a body of JSON. */
async function listDoors(): Promise<readonly Door[]> {
  const document = (await (await fetch(`${target.baseUrl}/api/v1/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, PlaceSchema>> };
  };
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const content = requestBody?.content["application/json"];
      if (content === undefined) return [];
      return {
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path: path.replace(/\{\w+\}/g, "ab".repeat(32)),
        isGenerating: /^\/(audio|images)/.test(path),
        schema: document.components.schemas[content.schema.$ref.split("/").at(-1) ?? ""] ?? {},
        least: Object.values(content.examples ?? {})[0]?.value ?? {},
      };
    }),
  );
}
