import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import sharp from "sharp";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { createGuardedFetch } from "../../../lib/http/guarded-fetch.ts";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import { ByteBudget } from "../../../lib/limits/byte-budget.ts";
import { CallLife } from "../../../lib/rpc/call-life.ts";
import { cidrListVar, readConfig } from "../../../lib/runtime/config.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { DecodeBudget } from "./decode-budget.ts";
import {
  loadReferences,
  maxReferenceBytes,
  type ReferenceDependencies,
  type ReferenceSource,
} from "./references.ts";

const mebibyte = 1024 * 1024;
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

/** Dependencies of a service with this REFERENCE_ALLOWED_CIDRS; the stand-ins for public servers are on loopback. */
function dependenciesOf(allowed = "127.0.0.0/8", timeoutMs = 20_000): ReferenceDependencies {
  const spec = { REFERENCE_ALLOWED_CIDRS: cidrListVar({ default: [] }) };
  const { REFERENCE_ALLOWED_CIDRS } = readConfig(spec, { REFERENCE_ALLOWED_CIDRS: allowed });
  const fetch = createGuardedFetch({ guard: createAddressGuard({ allowedCidrs: REFERENCE_ALLOWED_CIDRS }) });
  opened.push(fetch);
  const budget = new ByteBudget({ maxBytes: 2 * maxReferenceBytes, maxShareBytes: maxReferenceBytes });
  return { fetch, budget, room: new DecodeBudget().of("a key"), timeoutMs };
}

/** A server of files by path; counts what it is asked. */
async function serve(answer: (path: string, response: ServerResponse) => void) {
  const seen = { requests: 0, connections: 0, closedConnections: 0 };
  const server = createServer((request, response) => {
    seen.requests++;
    answer(request.url ?? "", response);
  });
  server.on("connection", (socket) => {
    seen.connections++;
    socket.on("close", () => seen.closedConnections++);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, seen };
}

const data = (bytes: Uint8Array): ReferenceSource => ({ kind: "data", bytes });
const remote = (url: string): ReferenceSource => ({ kind: "url", url });

async function picture(width: number, format: "png" | "jpeg" | "webp" | "gif" = "png"): Promise<Buffer> {
  const noise = { type: "gaussian", mean: 128, sigma: 40 } as const;
  return sharp({ create: { width, height: 48, channels: 3, background: "#000", noise } })
    .toFormat(format)
    .toBuffer();
}

/** The picture with zeros after its end, which no decoder minds. */
const padded = (bytes: Buffer, length: number) => Buffer.concat([bytes, Buffer.alloc(length - bytes.length)]);

/** Loads for a call that is over once it has ended. */
async function load(sources: ReferenceSource[], dependencies = dependenciesOf(), signal?: AbortSignal) {
  const life = new CallLife();
  const holder = { key: "a key", life };
  try {
    const named = sources.map((source, index) => ({ path: `input_references.${index}`, source }));
    return await loadReferences(named, holder, dependencies, signal ?? new AbortController().signal);
  } finally {
    life.end();
  }
}

async function errorOf(promise: Promise<unknown>): Promise<DomainError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof DomainError) return error;
  throw new Error("no DomainError", { cause: error });
}

/** The issues of a refusal as `path: message`. */
async function refusalOf(promise: Promise<unknown>): Promise<string[]> {
  const error = await errorOf(promise);
  expect(error.reason).toBe(ErrorReason.REFERENCE_REFUSED);
  return error.issues.map(({ path, message }) => `${path}: ${message}`);
}

const nth = (index: number, problem: string) => `input_references.${index}: ${problem}`;
const notAnImage = "is not a PNG, JPEG or WebP image";
const damaged = "is damaged or incomplete";

describe("references", () => {
  test("are given back byte for byte with their true types, whatever they were called", async () => {
    const [png, jpeg, webp] = await Promise.all([picture(8), picture(9, "jpeg"), picture(10, "webp")]);
    const { url } = await serve((path, response) => {
      response.setHeader("content-type", path === "/jpeg" ? "image/png" : "text/html");
      response.end(path === "/jpeg" ? jpeg : webp);
    });
    const loaded = await load([data(png), remote(`${url}/jpeg`), remote(`${url}/webp`)]);
    expect(loaded.map(({ mediaType }) => mediaType)).toEqual(["image/png", "image/jpeg", "image/webp"]);
    for (const [index, bytes] of [png, jpeg, webp].entries()) {
      expect(Buffer.compare(loaded[index]?.bytes ?? Buffer.alloc(0), bytes)).toBe(0);
    }
  });

  test("may be none", async () => {
    expect(await load([])).toEqual([]);
  });

  test("keep their order and are fetched four at a time", async () => {
    const pictures = await Promise.all(Array.from({ length: 16 }, (_, index) => picture(index + 1)));
    const held: (() => void)[] = [];
    let most = 0;
    const { url, seen } = await serve((path, response) => {
      held.push(() => response.end(pictures[Number(path.slice(1))]));
      most = Math.max(most, held.length);
      // The last of each four is answered first.
      if (held.length === 4) for (const answer of held.splice(0).reverse()) answer();
    });
    const loaded = await load(pictures.map((_, index) => remote(`${url}/${index}`)));
    expect(loaded.map(({ bytes }) => bytes.length)).toEqual(pictures.map(({ length }) => length));
    expect({ most, requests: seen.requests }).toEqual({ most: 4, requests: 16 });
  });
});

describe("references are refused", () => {
  test("all together for faults that show without fetching", async () => {
    const { url, seen } = await serve((_, response) => response.end());
    const huge = Buffer.alloc(20 * mebibyte + 1);
    const sources = [
      remote("ftp://host/a"),
      remote(url),
      data(huge),
      remote("http://u:p@host/"),
      remote("x"),
    ];
    expect(await refusalOf(load(sources))).toEqual([
      nth(0, "is not an http or https URL without credentials"),
      nth(2, "is larger than 20 MiB"),
      nth(3, "is not an http or https URL without credentials"),
      nth(4, "is not an http or https URL without credentials"),
    ]);
    expect(seen.connections).toBe(0);
  });

  test.for([
    "127.0.0.1",
    "localhost",
    "0x7f.1",
    "2130706433",
    "127.1",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "[::1]",
  ])("when %s is not listed", async (host) => {
    const { port, seen } = await serve((_, response) => response.end());
    const error = await errorOf(load([remote(`http://${host}:${port}/a.png`)], dependenciesOf("")));
    expect(error.message).toBe(nth(0, "could not be fetched"));
    expect(error.cause).toMatchObject({ kind: "address" });
    expect(seen.connections).toBe(0);
  });

  test("when a redirect leads to an address that is not listed", async () => {
    const { port, url, seen } = await serve((path, response) => {
      const location = path === "/meta" ? "http://169.254.169.254/" : `http://[::ffff:127.0.0.1]:${port}/x`;
      response.writeHead(302, { location }).end();
    });
    expect(await refusalOf(load([remote(`${url}/meta`)]))).toEqual([nth(0, "could not be fetched")]);
    const dependencies = dependenciesOf("127.0.0.1/32");
    const strict = createAddressGuard({ allowedCidrs: [] });
    // Only the address as it stands in the first URL is listed.
    const guard = { allows: (address: string) => address === "127.0.0.1" || strict.allows(address) };
    const fetch = createGuardedFetch({ guard });
    opened.push(fetch);
    seen.requests = 0;
    expect(await refusalOf(load([remote(`${url}/mapped`)], { ...dependencies, fetch }))).toEqual([
      nth(0, "could not be fetched"),
    ]);
    expect(seen.requests).toBe(1);
  });

  test("when they can't be fetched, in words that name no address", async () => {
    const bomb = gzipSync(await picture(8));
    const { url } = await serve((path, response) => {
      if (path === "/gzip") response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
      else if (path === "/cut")
        response.writeHead(200, { "content-length": 99 }).write("x", () => response.destroy());
      else response.writeHead(404).end("secret words");
    });
    for (const path of ["/missing", "/gzip", "/cut"]) {
      const error = await errorOf(load([data(await picture(4)), remote(url + path)]));
      expect(error.message).toBe(nth(1, "could not be fetched"));
      expect(JSON.stringify(error.issues)).not.toMatch(/127\.0|secret/);
    }
  });

  test("when they come too slowly", async () => {
    const { url, seen } = await serve((_, response) => void response.write("x"));
    const sources = Array.from({ length: 6 }, () => remote(url));
    const [refusal] = await refusalOf(load(sources, dependenciesOf("127.0.0.0/8", 300)));
    expect(refusal).toMatch(/^input_references\.[0-3]: could not be fetched in time$/);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(seen.connections));
    expect(seen.requests).toBeLessThanOrEqual(4);
  });

  test("when one is larger than 20 MiB, announced or endless, and its neighbours with it", async () => {
    const chunk = Buffer.alloc(mebibyte);
    const { url, seen } = await serve((path, response) => {
      if (path === "/announced") response.setHeader("content-length", 20 * mebibyte + 1).write("x");
      if (path !== "/endless") return;
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", more);
      more();
    });
    for (const path of ["/announced", "/endless"]) {
      const before = seen.connections;
      const refusal = refusalOf(load([remote(`${url}/silent`), remote(url + path)]));
      expect(await refusal).toEqual([nth(1, "is larger than 20 MiB")]);
      expect(seen.connections).toBe(before + 2);
      await vi.waitFor(() => expect(seen.closedConnections).toBe(seen.connections));
    }
  });

  test("when all together are larger than 64 MiB, and only then", async () => {
    const png = await picture(8);
    const [large, rest] = [padded(png, 20 * mebibyte), padded(png, 4 * mebibyte)];
    const { url } = await serve((path, response) => response.end(path === "/large" ? large : rest));
    const [far, farRest] = [remote(`${url}/large`), remote(`${url}/rest`)];
    const near = [data(large), data(large)];
    for (const fitting of [
      [...near, data(large), data(rest)],
      [...near, far, farRest],
      [far, far, far, farRest],
    ]) {
      expect(await load(fitting)).toHaveLength(4);
    }
    const over = "input_references: are larger than 64 MiB together";
    expect(await refusalOf(load([...near, data(large), data(rest), data(png)]))).toEqual([over]);
    expect(await refusalOf(load([...near, far, farRest, data(png)]))).toEqual([over]);
    expect(await refusalOf(load([far, far, far, far]))).toEqual([over]);
  });
});

describe("references are refused for what they hold:", () => {
  test.for<[string, string, () => Promise<Buffer> | Buffer]>([
    ["nothing", notAnImage, () => Buffer.alloc(0)],
    ["words", notAnImage, () => Buffer.from("<html>not found</html>")],
    ["a GIF", notAnImage, () => picture(8, "gif")],
    [
      "an SVG",
      notAnImage,
      () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
    ],
    ["a signature alone", damaged, () => Buffer.from("\x89PNG\r\n\x1a\n", "latin1")],
    ["a JPEG's first bytes", damaged, async () => (await picture(64, "jpeg")).subarray(0, 30)],
    ["a truncated PNG", damaged, async () => (await picture(64)).subarray(0, 4000)],
    ["a truncated JPEG", damaged, async () => (await picture(64, "jpeg")).subarray(0, 1000)],
    ["a truncated WebP", damaged, async () => (await picture(64, "webp")).subarray(0, 1000)],
    ["a WebP signature on noise", damaged, () => Buffer.from("RIFF\0\0\0\0WEBPVP8 noise")],
    ["an animated WebP", "is animated; a still image is needed", animatedWebp],
    ["an animated PNG", "is animated; a still image is needed", animatedPng],
    ["a bomb", "has more than 50 megapixels", bomb],
  ])("%s (%s)", async ([, problem, make]) => {
    const bytes = await make();
    const { url } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "image/png", "content-length": bytes.length }).end(bytes);
    });
    for (const source of [data(bytes), remote(url)]) {
      expect(await refusalOf(load([source]))).toEqual([nth(0, problem)]);
    }
  });

  test("a bomb is not decoded", async () => {
    const run = vi.fn();
    await refusalOf(load([data(await bomb())], { ...dependenciesOf(), room: { run } }));
    expect(run).not.toHaveBeenCalled();
  });

  test("damage anywhere either is refused or leaves an image that decodes", async () => {
    const pictures = await Promise.all([picture(32), picture(32, "jpeg"), picture(32, "webp")]);
    const dependencies = dependenciesOf();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pictures), fc.nat(), fc.uint8Array(), async (bytes, at, damage) => {
        const damagedBytes = Buffer.from(bytes);
        damagedBytes.set(damage.subarray(0, bytes.length - (at % bytes.length)), at % bytes.length);
        const outcome = await load([data(damagedBytes)], dependencies).catch((thrown: unknown) => thrown);
        if (outcome instanceof DomainError) expect(outcome.reason).toBe(ErrorReason.REFERENCE_REFUSED);
        else expect(outcome).toHaveLength(1);
      }),
    );
  });

  async function animatedWebp(): Promise<Buffer> {
    const frames = await Promise.all([picture(8), picture(8)]);
    return sharp(frames, { join: { animated: true } })
      .webp()
      .toBuffer();
  }

  /** A PNG with an animation control chunk after its header. */
  async function animatedPng(): Promise<Buffer> {
    const png = await picture(8);
    const afterHeader = 33;
    const control = Buffer.from("0000000861635450000000000000000000000000", "hex");
    control.write("acTL", 4, "latin1");
    return Buffer.concat([png.subarray(0, afterHeader), control, png.subarray(afterHeader)]);
  }

  async function bomb(): Promise<Buffer> {
    const black = { width: 12_000, height: 12_000, channels: 3, background: "#000" } as const;
    const png = await sharp({ create: black, limitInputPixels: false }).png().toBuffer();
    expect(png.length).toBeLessThan(mebibyte);
    return png;
  }
});

describe("loading references ends with its signal", () => {
  test("closes every connection and says who ended it", async () => {
    const { url, seen } = await serve((_, response) => void response.write("x"));
    const reasons = [
      [undefined, ErrorReason.CANCELLED],
      [new DOMException("deadline exceeded", "TimeoutError"), ErrorReason.TIMED_OUT],
    ] as const;
    for (const [reason, expected] of reasons) {
      const before = seen.requests;
      const controller = new AbortController();
      const sources = Array.from({ length: 6 }, () => remote(url));
      const running = errorOf(load(sources, dependenciesOf(), controller.signal));
      await vi.waitFor(() => expect(seen.requests).toBe(before + 4));
      controller.abort(reason);
      expect((await running).reason).toBe(expected);
      await vi.waitFor(() => expect(seen.closedConnections).toBe(seen.connections));
      expect(seen.requests).toBe(before + 4);
    }
  });

  test("also while images wait to be decoded", async () => {
    const dependencies = dependenciesOf();
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    const blocker = dependencies.room.run(1e9, new AbortController().signal, () => blocked);
    const controller = new AbortController();
    const run = vi.spyOn(dependencies.room, "run");
    const running = errorOf(load([data(await picture(8))], dependencies, controller.signal));
    await vi.waitFor(() => expect(run).toHaveBeenCalled());
    controller.abort();
    expect((await running).reason).toBe(ErrorReason.CANCELLED);
    unblock();
    await blocker;
  });
});
