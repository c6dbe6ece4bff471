import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import {
  imageFinished,
  imageStarted,
  imagesPath,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  errorOf,
  type GatewayServer,
  type ImageHandlers,
  RawConnection,
  speechPath,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const mebibyte = 1 << 20;
const maxBodyBytes = 32 * mebibyte;
const imageHandlers: ImageHandlers = {
  async *generate() {
    yield imageStarted();
    yield* wholeImage(0, Buffer.from("image"));
    yield imageFinished();
  },
};

/** A key is what it says: its account, its name, and whether it manages. */
const authenticate = async (key: string) => {
  const [accountId = "", , kind] = key.split(".").slice(1);
  const isManagement = kind === "management";
  return create(PrincipalSchema, {
    accountId,
    keyHash: key,
    keyKind: isManagement ? KeyKind.MANAGEMENT : KeyKind.INFERENCE,
    scopes: isManagement ? [] : [KeyScope.SPEECH, KeyScope.IMAGES],
  });
};

function headOf(path: string, key: string, length: string): string {
  const lines = [`POST ${path} HTTP/1.1`, "Host: media.test", `Authorization: Bearer ${key}`];
  return `${[...lines, "Content-Type: application/json", length].join("\r\n")}\r\n\r\n`;
}

const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

describe("a body that would cost far more than it weighs", () => {
  let gateway: GatewayServer;
  beforeAll(async () => {
    gateway = await startGatewayServer({ imageHandlers, authenticate });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const least = '"model":"acme/brush","prompt":"A lighthouse.","input":"Hello."';
  const management = "sk.one.key.management";
  const tooMany = "must not have more than 1024 members and items";
  const tooDeep = "must not be nested deeper than 64 levels";

  test.for([
    ["references of numbers", imagesPath, `{${least},"input_references":[`, "1,", 30 * mebibyte, tooMany],
    ["unknown lists", imagesPath, `{${least},"zz":[`, "[],", 30 * mebibyte, tooMany],
    ["unknown members", imagesPath, `{${least},"zz":{`, '"":1,', 30 * mebibyte, tooMany],
    ["nested lists", imagesPath, `{${least},"zz":`, "[", 30 * mebibyte, tooDeep],
    ["providers in order", speechPath, `{${least},"provider":{"order":[`, "1,", mebibyte, tooMany],
    ["nested objects", speechPath, `{${least},"trace":{"a":`, '{"a":', mebibyte, tooDeep],
    ["scopes", "/api/v1/keys", '{"name":"a","scopes":[', "1,", 30_000, tooMany],
    ["headers", "/api/v1/observability/destinations", '{"config":{"headers":[', "[],", 250_000, tooMany],
  ] as const)("is refused before it has arrived: %s", async ([, path, start, item, bytes, message]) => {
    const key = path.startsWith("/api/v1/k") || path.includes("observ") ? management : "sk.one.key";
    using client = new RawConnection(gateway);
    // No more comes than this: whoever waits for all of it waits for good.
    const begun = start + item.repeat(5000);
    expect(begun.length).toBeLessThan(bytes);
    client.send(headOf(path, key, `Content-Length: ${bytes}`) + begun);
    await waitUntil(() => client.received.includes("invalid_body"));
    expect(client.received).toMatch(/^HTTP\/1\.1 400 /);
    expect(client.received).toContain(message);
  });

  test("is as cheap when all of it comes at once", async () => {
    const body = Buffer.from(`{${least},"input_references":[${"1,".repeat(15 * mebibyte)}1]}`);
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const headers = { authorization: "Bearer sk.one.key", "content-type": "application/json" };
    const response = await fetch(gateway.baseUrl + imagesPath, { method: "POST", headers, body });
    // Parsed, the list alone took four times as much; the text is not in the heap.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(30 * mebibyte);
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
  });

  test.for([
    ["speech", speechPath, 2 * mebibyte, 400],
    ["keys", "/api/v1/keys", 40 << 10, 400],
    ["provider keys", "/api/v1/byok", 70 << 10, 400],
    ["destinations", "/api/v1/observability/destinations", 260 << 10, 400],
    ["images", imagesPath, maxBodyBytes + 1, 413],
  ] as const)("is too large for %s by what its fields can hold", async ([, path, bytes, status]) => {
    const key = path === speechPath || path === imagesPath ? "sk.one.key" : management;
    using client = new RawConnection(gateway);
    client.send(headOf(path, key, `Content-Length: ${bytes}`));
    await waitUntil(() => client.received.includes("body_too_large"));
    expect(client.received).toContain(` ${status} `);
  });
});

test("a text of speech is what it was, however long, with wide letters, and if it begins as a data URL does", async () => {
  const inputs: string[] = [];
  await using gateway = await startGatewayServer({
    authenticate,
    handlers: {
      async *synthesize({ input }) {
        inputs.push(input);
        yield* [];
      },
    },
  });
  const sent = [
    `Data: ${"x".repeat(100_000)}`,
    `data:image/png;base64,${"AAAA".repeat(30_000)}`,
    `${"x".repeat(300_000)}語"\n`,
  ];
  for (const input of sent) {
    const body = JSON.stringify({ model: "acme/voice", input });
    const headers = { authorization: "Bearer sk.one.key", "content-type": "application/json" };
    await (await fetch(gateway.baseUrl + speechPath, { method: "POST", headers, body })).text();
  }
  expect(inputs).toEqual(sent);
});

describe("room for bodies", () => {
  const settings = { maxBodyBytes: mebibyte, maxInflightBodyBytes: 8 * mebibyte };

  /** Sends so much of a body and no more. */
  function drip(gateway: GatewayServer, key: string, bytes: number): RawConnection {
    const client = new RawConnection(gateway);
    client.send(headOf(imagesPath, key, "Transfer-Encoding: chunked"));
    client.send(chunkOf(`{"prompt":"${"x".repeat(bytes)}`));
    return client;
  }

  async function post(gateway: GatewayServer, key: string, bytes: number): Promise<Response> {
    const body = JSON.stringify({ model: "acme/brush", prompt: "A lighthouse.", zz: "x".repeat(bytes) });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    return await fetch(gateway.baseUrl + imagesPath, { method: "POST", headers, body });
  }

  test.for([
    ["dripping bodies of one key", () => "sk.greedy.key", 10],
    ["dripping bodies that have almost arrived", () => "sk.greedy.key", mebibyte - 1000],
    ["dripping bodies of one account's keys", (index: number) => `sk.greedy.key${index}`, mebibyte - 1000],
  ] as const)("is left to others by %s", async ([, keyOf, bytes]) => {
    await using gateway = await startGatewayServer({ imageHandlers, authenticate, settings });
    using clients = new DisposableStack();
    const dripping = Array.from({ length: 24 }, (_, index) =>
      clients.use(drip(gateway, keyOf(index), bytes)),
    );
    await waitUntil(() => dripping.every(({ connected }) => connected));
    for (let round = 0; round < 3; round += 1) {
      const response = await post(gateway, "sk.other.key", mebibyte / 2);
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(dripping.map(({ received }) => received)).toEqual(dripping.map(() => ""));
  });

  test("is found at last by all bodies of a key that come at once, however large", async () => {
    await using gateway = await startGatewayServer({
      imageHandlers,
      authenticate,
      settings: { maxBodyBytes: mebibyte, maxInflightBodyBytes: 2 * mebibyte },
    });
    const statuses = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const response = await post(gateway, "sk.one.key", mebibyte - 100);
        await response.text();
        return response.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
