import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Server,
} from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import { selfSignedCertificate } from "../../test/support/self-signed-certificate.ts";
import { createGuardedSend, type GuardedSendOptions, type GuardedSendRequest } from "./guarded-send.ts";
import { GuardedSendError, type GuardedSendErrorKind } from "./guarded-send-error.ts";
import { createAddressGuard } from "./url-guard.ts";

const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A server; counts what reaches it and keeps the last request. */
async function serve(handle: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void) {
  const seen = { requests: 0, connections: 0, closedConnections: 0, path: "" };
  const server = createServer((request, response) => {
    seen.requests++;
    seen.path = request.url ?? "";
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => handle(request, response, Buffer.concat(pieces)));
  });
  server.on("connection", (socket) => {
    seen.connections++;
    socket.on("close", () => seen.closedConnections++);
  });
  const port = await listen(server);
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  return { port, url: `http://127.0.0.1:${port}/`, seen };
}

/** A server that writes bytes of its own as soon as something comes. */
async function serveRaw(answer: string) {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  });
  opened.push(server);
  return `http://127.0.0.1:${await listen(server)}/`;
}

const loopback = { address: "127.0.0.0", prefixLength: 8, family: "ipv4" } as const;

function createSend(options: Partial<GuardedSendOptions> = {}) {
  const guard = createAddressGuard({ allowedCidrs: [loopback] });
  const http = createGuardedSend({ guard, maxAnswerBytes: 100, ...options });
  opened.push(http);
  return (url: string, more: Partial<GuardedSendRequest> = {}) =>
    http.send({
      method: "POST",
      url,
      headers: {},
      body: Buffer.from("body"),
      signal: AbortSignal.timeout(20_000),
      ...more,
    });
}

async function kindOf(promise: Promise<unknown>): Promise<GuardedSendErrorKind> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof GuardedSendError)) throw new Error("no GuardedSendError", { cause: thrown });
  expect(thrown.message).not.toMatch(/127|::|localhost|example/);
  return thrown.kind;
}

describe("a guarded sending", () => {
  test.for(["POST", "PUT"] as const)("is one %s, answered with status, headers and body", async (method) => {
    const { url, seen } = await serve((request, response, body) => {
      response.writeHead(202, { "X-A": ["1", "2"] });
      response.end(JSON.stringify([request.method, request.url, request.headers, body.toString()]));
    });
    const answer = await createSend({ maxAnswerBytes: 1000 })(`${url}a?b=c#d`, {
      method,
      headers: { "x-b": "3" },
    });
    expect(answer).toMatchObject({ status: 202, headers: { "x-a": "1, 2" } });
    const [sent, path, headers, body] = JSON.parse(Buffer.from(answer.body).toString());
    expect([sent, path, body]).toEqual([method, "/a?b=c", "body"]);
    expect(headers).toMatchObject({
      "x-b": "3",
      "content-length": "4",
      "accept-encoding": "identity",
      "user-agent": "media-gateway",
    });
    expect(seen.requests).toBe(1);
  });

  test("may have an empty body", async () => {
    const { url } = await serve((request, response) => response.end(request.headers["content-length"]));
    const { body } = await createSend()(url, { body: new Uint8Array() });
    expect(Buffer.from(body).toString()).toBe("0");
  });

  test("uses its connections again", async () => {
    const { url, seen } = await serve((_, response) => response.end("x".repeat(100)));
    const send = createSend();
    for (let round = 0; round < 10; round++) expect((await send(url)).body).toHaveLength(100);
    expect(seen.requests).toBe(10);
    expect(seen.connections).toBeLessThan(10);
  });

  test.for([301, 307, 308, 400, 429, 500, 503])("resolves with a %d as it is", async (status) => {
    const { url, seen } = await serve((_, response) =>
      response.writeHead(status, { location: "/elsewhere" }).end("words"),
    );
    expect(await createSend()(url)).toMatchObject({ status, body: Buffer.from("words") });
    expect(seen.requests).toBe(1);
  });

  test("keeps the beginning of a longer answer and leaves the rest", async () => {
    const { url, seen } = await serve((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(90)));
      };
      response.on("drain", more);
      more();
    });
    const { status, body } = await createSend()(url);
    expect([status, Buffer.from(body).toString()]).toEqual([200, "x".repeat(100)]);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test("hands on an encoded answer as it is", async () => {
    const bytes = gzipSync("words");
    const { url } = await serve((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bytes),
    );
    expect(Buffer.from((await createSend()(url)).body).equals(bytes)).toBe(true);
  });

  test("takes an answer of HTTP/1.0, which ends with its connection", async () => {
    const url = await serveRaw("HTTP/1.0 200 OK\r\n\r\nwords");
    expect(Buffer.from((await createSend()(url)).body).toString()).toBe("words");
  });

  test("takes a refusal that breaks off, and no success that does", async () => {
    const { url } = await serve((request, response) => {
      response.writeHead(request.url === "/no" ? 403 : 200, { "content-length": 50 });
      response.write("words", () => response.destroy());
    });
    expect(await createSend()(`${url}no`)).toMatchObject({ status: 403, body: Buffer.from("words") });
    expect(await kindOf(createSend()(`${url}yes`))).toBe("reset");
  });
});

describe("a guarded sending fails with kind", () => {
  test.for([
    ["url", "ftp://127.0.0.1/"],
    ["url", "http://user:password@127.0.0.1/"],
    ["url", "nonsense"],
    ["address", "http://10.0.0.1/"],
    ["address", "http://[::1]/"],
    ["address", "https://169.254.169.254/"],
  ] as const)("%s for %s", async ([kind, url]) => {
    expect(await kindOf(createSend()(url))).toBe(kind);
  });

  test("address for a private address of any notation or name, with nothing connected", async () => {
    const { port, seen } = await serve((_, response) => response.end("secret"));
    const lookup: LookupFunction = (_, options, callback) => {
      if (options.all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
      else callback(null, "127.0.0.1", 4);
    };
    const send = createSend({ guard: createAddressGuard({ allowedCidrs: [] }), lookup });
    for (const host of ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "a.example"])
      expect(await kindOf(send(`http://${host}:${port}/`))).toBe("address");
    expect(seen.connections).toBe(0);
  });

  test.for(["ENOTFOUND", "EAI_AGAIN"])("name for a look-up that ends in %s", async (code) => {
    const lookup: LookupFunction = (_, _options, callback) =>
      callback(Object.assign(new Error("no"), { code }), []);
    expect(await kindOf(createSend({ lookup })("http://unknown.example/"))).toBe("name");
  });

  test("refused where nothing listens", async () => {
    const server = createTcpServer();
    const port = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await kindOf(createSend()(`http://127.0.0.1:${port}/`))).toBe("refused");
  });

  test("connect where a connection takes too long", async () => {
    const server = createTcpServer((socket) => socket.on("error", () => undefined));
    opened.push(server);
    const url = `https://127.0.0.1:${await listen(server)}/`;
    expect(await kindOf(createSend({ connectTimeoutMs: 50 })(url))).toBe("connect");
  });

  test("certificate or tls where the other side can't be trusted", async (context) => {
    const certificate = selfSignedCertificate();
    if (certificate === undefined) return context.skip("needs the openssl command to make a certificate");
    const server = createTlsServer(certificate, (_, response) => response.end());
    opened.push(server);
    const port = await listen(server);
    expect(await kindOf(createSend()(`https://127.0.0.1:${port}/`))).toBe("certificate");
    const plain = await serve((_, response) => response.end());
    expect(await kindOf(createSend()(plain.url.replace("http:", "https:")))).toBe("tls");
  });

  test.for([
    ["protocol", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["protocol", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(64 * 1024)}\r\n\r\n`],
    ["reset", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwo"],
    ["reset", ""],
  ] as const)("%s for the answer %j", async ([kind, answer]) => {
    expect(await kindOf(createSend()(await serveRaw(answer)))).toBe(kind);
  });

  test("aborted when its signal ends it: before, during the look-up, the wait and the answer", async () => {
    const { url, port, seen } = await serve((request, response) => {
      if (request.url === "/answer") response.writeHead(200, { "content-length": 50 }).write("x");
    });
    expect(await kindOf(createSend()(url, { signal: AbortSignal.abort() }))).toBe("aborted");
    expect(seen.connections).toBe(0);
    for (const path of ["wait", "answer"]) {
      const controller = new AbortController();
      const running = kindOf(createSend()(url + path, { signal: controller.signal }));
      await vi.waitFor(() => expect(seen.path).toBe(`/${path}`));
      controller.abort();
      expect(await running).toBe("aborted");
    }
    await vi.waitFor(() => expect(seen.closedConnections).toBe(2));
    const controller = new AbortController();
    const lookup: LookupFunction = () => controller.abort();
    const running = createSend({ lookup, connectTimeoutMs: 60_000 })(`http://slow.example:${port}/`, {
      signal: controller.signal,
    });
    expect(await kindOf(running)).toBe("aborted");
  });
});
