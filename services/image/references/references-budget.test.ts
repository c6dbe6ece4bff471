/** References of many requests at once: real servers that stall, real images, the budgets of a process. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import sharp from "sharp";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { createGuardedFetch, type GuardedFetch } from "../../../lib/http/guarded-fetch.ts";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import { ByteBudget } from "../../../lib/limits/byte-budget.ts";
import { CallLife } from "../../../lib/rpc/call-life.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { DecodeBudget } from "./decode-budget.ts";
import { loadReferences, maxReferenceBytes, type ReferenceSource } from "./references.ts";

const mebibyte = 1024 * 1024;
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

async function serve(answer: (path: string, response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => answer(request.url ?? "", response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Limits {
  timeoutMs?: number;
  roomTimeoutMs?: number;
}

/** The budgets of a process, and calls that load within them. */
class Process {
  readonly budget = new ByteBudget({
    maxBytes: 4 * maxReferenceBytes,
    maxShareBytes: maxReferenceBytes,
  });
  readonly decoding = new DecodeBudget();
  readonly fetch: GuardedFetch = createGuardedFetch({
    guard: createAddressGuard({
      allowedCidrs: [{ address: "127.0.0.0", prefixLength: 8, family: "ipv4" }],
    }),
    // Stalls are ended by the tests.
    idleTimeoutMs: 60_000,
  });

  constructor() {
    opened.push(this.fetch);
  }

  call(key: string, sources: readonly ReferenceSource[], limits: Limits = {}) {
    const life = new CallLife();
    const controller = new AbortController();
    const { budget, fetch } = this;
    const dependencies = { budget, fetch, room: this.decoding.of(key), timeoutMs: 60_000, ...limits };
    const loaded = loadReferences(named(sources), { key, life }, dependencies, controller.signal);
    loaded.catch(() => undefined);
    return { life, controller, loaded };
  }
}

const named = (sources: readonly ReferenceSource[]) =>
  sources.map((source, index) => ({ path: `input_references.${index}`, source }));
const data = (bytes: Uint8Array): ReferenceSource => ({ kind: "data", bytes });
const remote = (url: string): ReferenceSource => ({ kind: "url", url });

function flat(width: number, height: number) {
  return sharp({ create: { width, height, channels: 4, background: "#3a68" } });
}

/** 16 bits a channel, and no row whole before the last pass. */
const interlaced = (side: number) =>
  flat(side, side).toColourspace("rgb16").png({ progressive: true }).toBuffer();

/** Answers with 20 MiB, of which the last byte never comes; returns how much was written of all. */
function stalling() {
  const sent = { bytes: 0, stalled: 0 };
  const piece = Buffer.alloc(256 * 1024);
  const answer = (response: ServerResponse) => {
    response.writeHead(200, { "content-length": 20 * mebibyte });
    let left = 20 * mebibyte;
    const more = () => {
      while (left > piece.length && !response.destroyed) {
        left -= piece.length;
        sent.bytes += piece.length;
        if (!response.write(piece)) return;
      }
      sent.stalled++;
    };
    response.on("drain", more);
    more();
  };
  return { sent, answer };
}

describe("downloads that stall", () => {
  test("hold no more than the share of their key, and another key is served meanwhile", async () => {
    const picture = await flat(40, 40).png().toBuffer();
    const { sent, answer } = stalling();
    const url = await serve((path, response) => {
      if (path === "/picture") response.end(picture);
      else answer(response);
    });
    const all = new Process();
    const stalled = Array.from({ length: 12 }, () =>
      all.call(
        "hostile",
        Array.from({ length: 3 }, () => remote(`${url}/stall`)),
      ),
    );
    // One has its three, and nobody else of its key more than is left of the share.
    await waitUntil(() => sent.stalled >= 3 && all.budget.usedBytes > maxReferenceBytes / 2);
    const other = all.call("other", [remote(`${url}/picture`), data(picture)]);
    expect(await other.loaded).toHaveLength(2);
    expect(all.budget.usedBytes).toBeLessThanOrEqual(2 * maxReferenceBytes + 2 * picture.length);
    // What was sent lies in sockets, not here.
    expect(sent.bytes).toBeLessThan(all.budget.usedBytes + 36 * 8 * mebibyte);
    for (const { controller, life } of stalled) {
      controller.abort();
      life.end();
    }
    other.life.end();
    await Promise.allSettled(stalled.map(({ loaded }) => loaded));
    expect(all.budget.usedBytes).toBe(0);
  });

  test("are no fault of a request that found no room because of them", async () => {
    const { sent, answer } = stalling();
    const url = await serve((_, response) => answer(response));
    const all = new Process();
    const stall = [remote(url), remote(url), remote(url)];
    for (const _ of [1, 2]) all.call("hostile", stall);
    await waitUntil(() => sent.stalled >= 3);
    const large = data(Buffer.alloc(20 * mebibyte));
    const error = await all.call("hostile", [large], { roomTimeoutMs: 50 }).loaded.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(DomainError);
    expect(error).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE, retryAfterMs: 1000 });
  });
});

describe("references in use", () => {
  test("count until the life of their call is over, whoever has left", async () => {
    const picture = await flat(40, 40).png().toBuffer();
    const all = new Process();
    const { life, loaded, controller } = all.call("a key", [data(picture), data(picture)]);
    await loaded;
    const work = Promise.withResolvers<void>();
    life.keepUntil(work.promise);
    controller.abort();
    life.end();
    expect(all.budget.usedBytes).toBe(2 * picture.length);
    work.resolve();
    await waitUntil(() => all.budget.usedBytes === 0);
  });

  test("count while they are decoded for nobody", async () => {
    const picture = await interlaced(2048);
    const all = new Process();
    const { life, loaded, controller } = all.call("a key", [data(picture)]);
    await waitUntil(() => sharp.counters().process > 0);
    controller.abort();
    life.end();
    await expect(loaded).rejects.toMatchObject({ reason: ErrorReason.CANCELLED });
    expect(all.budget.usedBytes).toBe(picture.length);
    await waitUntil(() => all.budget.usedBytes === 0);
    expect(sharp.counters().process).toBe(0);
  });
});

test("sixteen large images of one key don't delay a small one of another", async () => {
  const [large, small] = [await interlaced(2048), await flat(40, 40).png().toBuffer()];
  const all = new Process();
  let decoded = 0;
  const hostile = all.decoding.of("hostile");
  const many = loadReferences(
    named(Array.from({ length: 16 }, () => data(large))),
    { key: "hostile", life: new CallLife() },
    {
      ...all,
      room: {
        run: (bytes, signal, work) =>
          hostile.run(bytes, signal, async () => {
            const result = await work();
            decoded++;
            return result;
          }),
      },
    },
    new AbortController().signal,
  );
  await waitUntil(() => sharp.counters().process > 0);
  await all.call("other", [data(small)]).loaded;
  // First come, first served, it would have waited for fourteen.
  expect(decoded).toBeLessThan(8);
  expect(await many).toHaveLength(16);
  expect(decoded).toBe(16);
});
