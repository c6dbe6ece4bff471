import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Server,
} from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  createGuardedFetch,
  GuardedFetchError,
  type GuardedFetchErrorKind,
  type GuardedFetchOptions,
  type GuardedFetchRequest,
} from "./guarded-fetch.ts";
import { createAddressGuard } from "./url-guard.ts";

const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

async function listen(server: Server, host = "127.0.0.1", port = 0): Promise<number> {
  const failed = once(server, "error").then(([error]) => Promise.reject(error));
  server.listen(port, host);
  await Promise.race([once(server, "listening"), failed]);
  failed.catch(() => undefined);
  return (server.address() as AddressInfo).port;
}

/** A server; counts what reaches it. */
async function serve(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  host?: string,
  listenPort?: number,
) {
  const seen = { requests: 0, connections: 0, closedConnections: 0, path: "" };
  const server = createServer((request, response) => {
    seen.requests++;
    seen.path = request.url ?? "";
    handle(request, response);
  });
  server.on("connection", (socket) => {
    seen.connections++;
    socket.on("close", () => seen.closedConnections++);
  });
  const port = await listen(server, host, listenPort);
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  return { port, url: `http://${host ?? "127.0.0.1"}:${port}/`, seen };
}

const loopback = { address: "127.0.0.0", prefixLength: 8, family: "ipv4" } as const;

function createFetch(options: Partial<GuardedFetchOptions> = {}) {
  const guard = createAddressGuard({ allowedCidrs: [loopback] });
  const fetch = createGuardedFetch({ guard, ...options });
  opened.push(fetch);
  return (url: string, more: Partial<GuardedFetchRequest> = {}) =>
    fetch.fetch({ url, signal: new AbortController().signal, timeoutMs: 20_000, maxBytes: 1000, ...more });
}

/** One that allows public addresses alone. */
const createStrictFetch = (options: Partial<GuardedFetchOptions> = {}) =>
  createFetch({ guard: createAddressGuard({ allowedCidrs: [] }), ...options });

async function errorOf(promise: Promise<unknown>): Promise<GuardedFetchError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof GuardedFetchError) return error;
  throw new Error("no GuardedFetchError", { cause: error });
}

async function kindOf(promise: Promise<unknown>): Promise<GuardedFetchErrorKind> {
  return (await errorOf(promise)).kind;
}

/** Names become these addresses, one list a look-up. */
function lookupOf(...answers: LookupAddress[][]) {
  return vi.fn<LookupFunction>((_, options, callback) => {
    const addresses = answers.length > 1 ? answers.shift() : answers[0];
    const [first] = addresses ?? [];
    if (options.all) callback(null, addresses ?? []);
    else callback(null, first?.address ?? "", first?.family);
  });
}

const at = (address: string): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 });

describe("a guarded fetch", () => {
  test("gives the bytes and what the server calls them", async () => {
    const { url } = await serve((request, response) => {
      response.setHeader("content-type", "image/png");
      response.end(JSON.stringify(request.headers));
    });
    const { bytes, contentType } = await createFetch()(`${url}a?b=c`, { accept: "image/*" });
    expect(contentType).toBe("image/png");
    const headers = JSON.parse(Buffer.from(bytes).toString());
    expect(headers).toMatchObject({ accept: "image/*", "accept-encoding": "identity" });
    expect(headers).not.toHaveProperty("authorization");
    expect(headers).not.toHaveProperty("cookie");
  });

  test("keeps what comes in the smallest pieces in one buffer, and reads no further than it is let", async () => {
    const { url } = await serve((_, response) => {
      for (let index = 0; index < 1000; index++) response.write(String(index % 10));
      response.end();
    });
    let kept = 0;
    const allowed = Promise.withResolvers<boolean>();
    const take = (bytes: number) => {
      kept += bytes;
      return kept < 500 ? true : allowed.promise;
    };
    const fetching = createFetch()(url, { take });
    await vi.waitFor(() => expect(kept).toBeGreaterThanOrEqual(500));
    allowed.resolve(true);
    const { bytes } = await fetching;
    expect(Buffer.from(bytes).toString()).toBe("0123456789".repeat(100));
    expect(bytes.buffer.byteLength).toBe(1000);
    expect(kept).toBe(1000);
  });

  test.for([301, 302, 303, 307, 308])("follows a %d", async (status) => {
    const { url } = await serve((request, response) => {
      if (request.url === "/end") response.end("here");
      else response.writeHead(status, { location: "end" }).end("moved");
    });
    expect(Buffer.from((await createFetch()(url)).bytes).toString()).toBe("here");
  });

  test("follows three redirects and no fourth", async () => {
    const { url, seen } = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end("here");
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    });
    const fetch = createFetch();
    expect((await fetch(`${url}3`)).bytes).toHaveLength(4);
    seen.requests = 0;
    expect(await kindOf(fetch(`${url}4`))).toBe("failed");
    expect(seen).toMatchObject({ requests: 4, path: "/1" });
  });

  test("looks a name up and connects to what it found", async () => {
    const { port } = await serve((request, response) => response.end(request.headers.host));
    const lookup = lookupOf([at("127.0.0.1")]);
    const { bytes } = await createFetch({ lookup })(`http://pictures.example:${port}/`);
    expect(Buffer.from(bytes).toString()).toBe(`pictures.example:${port}`);
    expect(lookup).toHaveBeenCalledOnce();
  });
});

describe("a guarded fetch refuses", () => {
  const hosts = ["127.0.0.1", "localhost", "LOCALHOST", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1"];
  const more = ["127.1", "127.0.0.2", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]"];
  const odd = ["１２７.0.0.1", "127。0。0。1", "ⓛocalhost", "[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1."];

  test.for([...hosts, ...more, ...odd])("to connect to %s", async (host) => {
    const { port, seen } = await serve((_, response) => response.end("secret"));
    const fetch = createStrictFetch();
    for (const scheme of ["http", "https"]) {
      const error = await errorOf(fetch(`${scheme}://${host}:${port}/`));
      expect(error.kind).toBe("address");
      expect(error.message).not.toMatch(/127|::|localhost/);
    }
    expect(seen.connections).toBe(0);
  });

  test.for([
    "http://169.254.169.254/latest/meta-data/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    "http://[::ffff:a9fe:a9fe]/",
  ])("%s even where everything is listed", async (url) => {
    const guard = createAddressGuard({
      allowedCidrs: [
        { address: "0.0.0.0", prefixLength: 0, family: "ipv4" },
        { address: "::", prefixLength: 0, family: "ipv6" },
      ],
    });
    expect(await kindOf(createFetch({ guard })(url))).toBe("address");
  });

  test.for(["ftp://example.com/", "file:///etc/passwd", "data:,x", "http://u:p@example.com/", "nonsense"])(
    "the URL %s",
    async (url) => {
      expect(await kindOf(createFetch()(url))).toBe("url");
    },
  );

  test.for<[GuardedFetchErrorKind, string]>([
    ["address", "http://127.0.0.1:$PORT/secret"],
    ["address", "http://localhost:$PORT/secret"],
    ["address", "http://2130706433:$PORT/secret"],
    ["address", "//[::ffff:7f00:1]:$PORT/secret"],
    ["address", "http://169.254.169.254/"],
    ["url", "file:///etc/passwd"],
    ["url", "http://user:password@pictures.example/"],
    ["url", "gopher://127.0.0.1:$PORT/"],
  ])("with kind %s a redirect to %s", async ([kind, target]) => {
    const secret = await serve((_, response) => response.end("secret"));
    // What stands for a public server here is the one address that is listed.
    const location = target.replace("$PORT", String(secret.port));
    const start = await serve((_, response) => response.writeHead(302, { location }).end(), "127.0.0.2");
    const guard = createAddressGuard({
      allowedCidrs: [{ address: "127.0.0.2", prefixLength: 32, family: "ipv4" }],
    });
    expect(await kindOf(createFetch({ guard })(start.url))).toBe(kind);
    expect(start.seen.requests).toBe(1);
    expect(secret.seen.connections).toBe(0);
  });

  test("a redirect that leads in a circle, or nowhere", async () => {
    const { url, seen } = await serve((request, response) => {
      response.writeHead(302, request.url === "/loop" ? { location: "/loop" } : {}).end();
    });
    const fetch = createFetch();
    expect(await kindOf(fetch(`${url}loop`))).toBe("failed");
    expect(seen.requests).toBe(4);
    expect(await kindOf(fetch(url))).toBe("failed");
  });

  test("a name that resolves to a private address, also where it does so only the second time", async () => {
    const secret = await serve((_, response) => response.end("secret"));
    const listed = await serve(
      (_, response) => response.setHeader("connection", "close").end("open"),
      "127.0.0.2",
      secret.port,
    );
    const guard = createAddressGuard({
      allowedCidrs: [{ address: "127.0.0.2", prefixLength: 32, family: "ipv4" }],
    });
    const lookup = lookupOf([at("127.0.0.2")], [at("127.0.0.1")]);
    const fetch = createFetch({ guard, lookup });
    const url = `http://rebinding.example:${secret.port}/`;
    expect(Buffer.from((await fetch(url)).bytes).toString()).toBe("open");
    // One look-up for check and connection: between them nothing can change.
    expect(lookup).toHaveBeenCalledTimes(1);
    await vi.waitFor(() => expect(listed.seen.closedConnections).toBe(1));
    expect(await kindOf(fetch(url))).toBe("address");
    expect(lookup).toHaveBeenCalledTimes(2);
    expect(secret.seen.connections).toBe(0);
  });

  test("the private ones among a name's addresses, and uses the others", async () => {
    const secret = await serve((_, response) => response.end("secret"));
    await serve((_, response) => response.end("open"), "127.0.0.2", secret.port);
    const guard = createAddressGuard({
      allowedCidrs: [{ address: "127.0.0.2", prefixLength: 32, family: "ipv4" }],
    });
    const lookup = lookupOf([at("::1"), at("127.0.0.1"), at("127.0.0.2"), at("fe80::1%1")]);
    const fetch = createFetch({ guard, lookup });
    const { bytes } = await fetch(`http://many.example:${secret.port}/`);
    expect(Buffer.from(bytes).toString()).toBe("open");
    expect(secret.seen.connections).toBe(0);
  });

  test("content that is encoded, however small it would be", async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000));
    const { url, seen } = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": bomb.length }).end(bomb);
    });
    expect(await kindOf(createFetch()(url, { maxBytes: 100_000 }))).toBe("failed");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test("content over the limit, announced or not", async () => {
    const { url, seen } = await serve((request, response) => {
      if (request.url === "/announced") response.setHeader("content-length", "1001").write("x");
      else if (request.url === "/fits") response.end("x".repeat(1000));
      else {
        const more = () => {
          while (!response.destroyed && response.write("x".repeat(100)));
        };
        response.on("drain", more);
        more();
      }
    });
    const fetch = createFetch();
    expect((await fetch(`${url}fits`)).bytes).toHaveLength(1000);
    expect(await kindOf(fetch(`${url}announced`))).toBe("too_large");
    expect(await kindOf(fetch(`${url}endless`))).toBe("too_large");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(2));
  });

  test("content that its reader does not take", async () => {
    const { url, seen } = await serve((_, response) => void response.write("x".repeat(500)));
    const take = vi.fn(() => false);
    expect(await kindOf(createFetch()(url, { take }))).toBe("too_large");
    expect(take).toHaveBeenCalledExactlyOnceWith(500);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test.for([204, 206, 304, 400, 404, 500])("an answer of status %d", async (status) => {
    const { url } = await serve((_, response) => response.writeHead(status).end());
    expect(await kindOf(createFetch()(url))).toBe("failed");
  });

  test("the rest of an answer that is of no use", async () => {
    const { url, seen } = await serve((request, response) => {
      if (request.url === "/end") response.end("here");
      else if (request.url === "/moved") response.writeHead(302, { location: "/end" }).write("moved");
      else response.writeHead(404).write("missing");
    });
    const fetch = createFetch();
    expect(await kindOf(fetch(`${url}missing`))).toBe("failed");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
    expect((await fetch(`${url}moved`)).bytes).toHaveLength(4);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(2));
  });

  test("content that breaks off, and a server that is not there or speaks no HTTP", async () => {
    const { url } = await serve((_, response) => {
      response.writeHead(200, { "content-length": 10 });
      response.write("half", () => response.destroy());
    });
    expect(await kindOf(createFetch()(url))).toBe("failed");
    const server = createTcpServer((socket) =>
      socket
        .on("error", () => undefined)
        .resume()
        .end("SSH-2.0-x\r\n"),
    );
    const port = await listen(server);
    expect(await kindOf(createFetch()(`http://127.0.0.1:${port}/`))).toBe("failed");
    server.close();
    await once(server, "close");
    expect(await kindOf(createFetch()(`http://127.0.0.1:${port}/`))).toBe("failed");
    const lookup: LookupFunction = (_, __, callback) => callback(new Error("unknown"), []);
    expect(await kindOf(createFetch({ lookup })("http://nowhere.example/"))).toBe("failed");
  });
});

describe("a guarded fetch ends", () => {
  test.for<[string, Partial<GuardedFetchOptions>, Partial<GuardedFetchRequest>]>([
    ["/headers", { headersTimeoutMs: 50 }, {}],
    ["/body", { idleTimeoutMs: 50 }, {}],
    ["/headers", {}, { timeoutMs: 300 }],
    ["/body", {}, { timeoutMs: 300 }],
    ["/drip", {}, { timeoutMs: 300, maxBytes: 1e9 }],
  ])("when %s takes too long: %j %j", async ([path, options, request]) => {
    const { url, seen } = await serve((_, response) => {
      if (path === "/body") response.write("x");
      const drip = () =>
        response.write("x", (error) => {
          if (!error) setImmediate(drip);
        });
      if (path === "/drip") drip();
    });
    expect(await kindOf(createFetch(options)(url, request))).toBe("timeout");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(seen.connections));
  });

  test("when redirects go on for too long", async () => {
    const { url } = await serve((_, response) => response.writeHead(302, { location: "/" }).end());
    const fetch = createFetch({ maxRedirects: Number.POSITIVE_INFINITY });
    expect(await kindOf(fetch(url, { timeoutMs: 100 }))).toBe("timeout");
  });

  test("when nobody completes the connection", async () => {
    // A TLS handshake that nobody answers.
    const server = createTcpServer((socket) => socket.on("error", () => undefined));
    const port = await listen(server);
    opened.push(server);
    const fetch = createFetch({ connectTimeoutMs: 50 });
    expect(await kindOf(fetch(`https://127.0.0.1:${port}/`))).toBe("failed");
  });

  test("when its signal is aborted: before, during the look-up, the wait and the content", async () => {
    const { url, port, seen } = await serve((request, response) => {
      if (request.url === "/body") response.write("x");
    });
    expect(await kindOf(createFetch()(url, { signal: AbortSignal.abort() }))).toBe("aborted");
    expect(seen.connections).toBe(0);

    for (const path of ["headers", "body"]) {
      const controller = new AbortController();
      const running = kindOf(createFetch()(url + path, { signal: controller.signal }));
      await vi.waitFor(() => expect(seen.path).toBe(`/${path}`));
      controller.abort();
      expect(await running).toBe("aborted");
    }
    await vi.waitFor(() => expect(seen.closedConnections).toBe(2));

    const controller = new AbortController();
    const lookup: LookupFunction = () => controller.abort();
    const running = kindOf(
      createFetch({ lookup })(`http://slow.example:${port}/`, { signal: controller.signal }),
    );
    expect(await running).toBe("aborted");
  });
});
