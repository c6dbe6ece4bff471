import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { expectUnharmed, printDamages, startTarget, type Target, underAttack, unknownKey } from "./target.ts";

const speech = { model: "local/flite", input: "Hello.", response_format: "pcm" };
const synthesize = "/media.speech.v1.SpeechService/Synthesize";
/** Shorter than by default, so that what must end by itself does so while the test looks. */
const bodyTimeoutMs = 10_000;

let target: Target;
const sockets = new Set<Socket>();
const sessions = new Set<ClientHttp2Session>();
/** Pieces of answers that came on raw connections. */
let answered = 0;

beforeAll(async () => {
  target = await startTarget({ BODY_TIMEOUT_MS: `${bodyTimeoutMs}` });
}, 120_000);

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const session of sessions) session.destroy();
  answered = 0;
});

afterAll(async () => {
  printDamages("connections");
  await target?.close();
});

describe("the REST port", () => {
  test("serves others while many connections never end their headers", async () => {
    const damage = await underAttack(target, "500 connections whose headers never end", async () => {
      const slow = await Promise.all(Array.from({ length: 500 }, () => open(target.restPort)));
      for (const socket of slow) socket.write("POST /api/v1/images HTTP/1.1\r\nhost: a\r\nx-header: ");
      await speaks();
    });
    expectUnharmed(damage);
  });

  test("serves others while one key drips as many bodies as there may be", async () => {
    const damage = await underAttack(target, "64 dripping bodies of one key", async () => {
      const dripping = await Promise.all(Array.from({ length: 64 }, () => open(target.restPort)));
      for (const socket of dripping) {
        socket.write(
          `POST /api/v1/images HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${target.inferenceKey}\r\n` +
            "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        );
      }
      await speakOften(() => {
        for (const socket of dripping) socket.write("1\r\n \r\n");
      });
    });
    expectUnharmed(damage);
  });

  test("serves others while one key announces bodies that never come", async () => {
    const damage = await underAttack(target, "64 bodies of 32 MiB that never come", async () => {
      for (const socket of await Promise.all(Array.from({ length: 64 }, () => open(target.restPort)))) {
        socket.write(
          `POST /api/v1/images HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${target.inferenceKey}\r\n` +
            `content-type: application/json\r\ncontent-length: ${32 << 20}\r\n\r\n{`,
        );
      }
      await speakOften();
    });
    expectUnharmed(damage);
  });

  test("serves others while unknown keys are tried", async () => {
    const damage = await underAttack(target, "2,000 requests with unknown keys", async () => {
      const guess = () =>
        post("/api/v1/keys", `${unknownKey.slice(0, -8)}${Math.random().toString(36).slice(2, 10)}`);
      for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 100 }, guess));
      await speaks();
    });
    expectUnharmed(damage);
  });
});

describe("the RPC port", () => {
  test("holds little for streams that never end, and ends them", async () => {
    const damage = await underAttack(target, "1,000 streams of HTTP/2 that never end", async () => {
      const streams = Array.from({ length: 10 }, () => session()).flatMap((client) =>
        Array.from({ length: 100 }, () => {
          const stream = client.request({
            ":method": "POST",
            ":path": synthesize,
            "content-type": "application/grpc+proto",
            authorization: `Bearer ${target.inferenceKey}`,
          });
          stream.on("error", () => undefined);
          stream.write(Buffer.concat([Buffer.from([0, 0, 15, 0xff, 0xff]), Buffer.alloc(64 << 10, 10)]));
          return stream;
        }),
      );
      await speaks();
      await Promise.all(streams.map((stream) => stream.readableEnded || once(stream.resume(), "end")));
    });
    expectUnharmed(damage);
  }, 120_000);

  test("ends whoever opens and resets streams without end", async () => {
    const damage = await underAttack(target, "100,000 streams that are reset at once", async () => {
      const client = session();
      const headers = { ":method": "POST", ":path": synthesize, "content-type": "application/grpc+proto" };
      for (let round = 0; round < 1000 && !client.destroyed && !client.closed; round++) {
        for (let each = 0; each < 100 && !client.destroyed && !client.closed; each++) {
          client
            .request(headers)
            .on("error", () => undefined)
            .close(constants.NGHTTP2_CANCEL);
        }
        await new Promise(setImmediate);
      }
      await speaks();
    });
    expectUnharmed(damage);
  }, 60_000);

  test("allocates nothing for messages that are only announced", async () => {
    const damage = await underAttack(target, "200 announced messages of 4 GiB", async () => {
      for (const socket of await Promise.all(Array.from({ length: 200 }, () => open(target.rpcPort)))) {
        socket.write(
          `POST ${synthesize} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${target.inferenceKey}\r\n` +
            "content-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n5\r\n\0\xff\xff\xff\xff\r\n",
          "latin1",
        );
      }
      await speaks();
    });
    expectUnharmed(damage);
  });
});

/** A connection whose end is nobody's fault here. */
async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  sockets.add(socket.once("close", () => sockets.delete(socket)));
  await once(socket, "connect");
  return socket.on("data", () => answered++);
}

function session(): ClientHttp2Session {
  const client = connectHttp2(`http://127.0.0.1:${target.rpcPort}`).on("error", () => undefined);
  sessions.add(client.once("close", () => sessions.delete(client)));
  return client;
}

/** Another key is spoken to meanwhile, as if nothing were. */
async function speaks(): Promise<void> {
  const response = await fetch(`${target.baseUrl}/api/v1/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${target.neighbourKey}`, "content-type": "application/json" },
    body: JSON.stringify(speech),
  });
  expect(response.status).toBe(200);
  expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(1000);
}

/** Often enough for all that was sent to have arrived, and before any of it has run out of time and was answered. */
async function speakOften(between = () => {}): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await speaks();
    between();
  }
  expect(answered).toBe(0);
}

async function post(path: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(target.baseUrl + path, { method: "POST", headers, body: "{}" });
  await response.arrayBuffer();
  return response.status;
}
