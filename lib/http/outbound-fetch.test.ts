import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { OutboundHttpError, type OutboundHttpErrorKind } from "./outbound-error.ts";
import { createOutboundHttp, type OutboundRequest, type OutboundResponse } from "./outbound-fetch.ts";

const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

function createHttp(options = {}) {
  const http = createOutboundHttp(options);
  opened.push(http);
  return http;
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A server of whole HTTP answers; counts its connections. */
async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(handle);
  const seen = { requests: 0, connections: 0, closedConnections: 0 };
  server.on("request", () => seen.requests++);
  server.on("connection", (socket) => {
    seen.connections++;
    socket.on("close", () => seen.closedConnections++);
  });
  opened.push({
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
  return { url: await listen(server), seen };
}

/** A server that answers each request with these bytes and then ends the connection or leaves it. */
async function serveBytes(answer: string, then: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const seen = { requests: 0 };
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", () => {
      seen.requests++;
      socket.write(answer, () => then(socket));
    });
  });
  opened.push({
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  });
  return { url: await listen(server), seen };
}

function get(url: string, more: Partial<OutboundRequest> = {}): OutboundRequest {
  return { method: "GET", url, headers: {}, signal: new AbortController().signal, ...more };
}

async function readAll(response: OutboundResponse): Promise<string> {
  return Buffer.concat(await Array.fromAsync(response.body)).toString("latin1");
}

async function kindOf(promise: Promise<unknown>): Promise<OutboundHttpErrorKind> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof OutboundHttpError) return error.kind;
  throw new Error("no OutboundHttpError", { cause: error });
}

describe("an outbound request", () => {
  test("sends method, path, headers and body, and asks for no compression", async () => {
    const { url } = await serve((request, response) => {
      request.setEncoding("utf8");
      request.on("data", (body) => {
        const { method, url: path, headers } = request;
        response.setHeader("x-many", ["a", "b"]);
        response.end(JSON.stringify({ method, path, headers, body }));
      });
    });
    const response = await createHttp().request({
      ...get(`${url}a/b?c=d`, { method: "POST", body: "häl" }),
      headers: { "x-own": "1" },
    });
    expect(response.status).toBe(200);
    expect(response.headers["x-many"]).toBe("a, b");
    expect(JSON.parse(Buffer.from(await readAll(response), "latin1").toString())).toMatchObject({
      method: "POST",
      path: "/a/b?c=d",
      headers: { "accept-encoding": "identity", "content-length": "4", "x-own": "1" },
      body: "häl",
    });
  });

  test("sends a body in pieces with its length, as it stands", async () => {
    const { url } = await serve(async (request, response) => {
      const body = Buffer.concat(await Array.fromAsync(request));
      response.end(`${request.headers["content-length"]} ${request.headers["transfer-encoding"]} ${body}`);
    });
    const http = createHttp();
    const pieces = ["a", "", "b".repeat(500_000), "c"].map((text) => Buffer.from(text));
    const response = await http.request(get(url, { method: "POST", body: pieces }));
    expect(await readAll(response)).toBe(`500002 undefined a${"b".repeat(500_000)}c`);
    const empty = await http.request(get(url, { method: "POST", body: [] }));
    expect(await readAll(empty)).toBe("0 undefined ");
  });

  test("uses a connection again once the answer has been read", async () => {
    const { url, seen } = await serve((_, response) => response.end("x"));
    const http = createHttp();
    for (let count = 1; count <= 5; count++) {
      await readAll(await http.request(get(url)));
      await vi.waitFor(() => expect(seen.requests).toBe(count));
    }
    // The client looks at a connection for one turn of its loop before it uses it again.
    expect(seen.connections).toBeLessThan(5);
  });

  test("does not follow redirects and takes any status", async () => {
    const { url, seen } = await serve((_, response) => {
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    const response = await createHttp().request(get(url));
    expect([response.status, response.headers.location]).toEqual([307, "/elsewhere"]);
    await readAll(response);
    expect(seen.requests).toBe(1);
  });

  test("skips informational answers", async () => {
    const { url } = await serve((_, response) => {
      response.writeEarlyHints({ link: "</a>; rel=preload" });
      response.end("x");
    });
    const response = await createHttp().request(get(url));
    expect([response.status, await readAll(response)]).toEqual([200, "x"]);
  });

  test("gives bytes while the rest is still held back", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { url } = await serve((_, response) => {
      response.write("first");
      gate.then(() => response.end("second"));
    });
    const { body } = await createHttp().request(get(url));
    expect(String((await body.next()).value)).toBe("first");
    open();
    expect(String((await body.next()).value)).toBe("second");
    expect((await body.next()).done).toBe(true);
  });

  test("makes no second request when a connection breaks without an answer", async () => {
    const { url, seen } = await serveBytes("", (socket) => socket.destroy());
    expect(await kindOf(createHttp().request(get(url, { method: "GET" })))).toBe("reset");
    expect(seen.requests).toBe(1);
  });

  test("stops reading while its reader is behind, without a time-out", async () => {
    const chunk = Buffer.alloc(64 * 1024);
    const total = 512;
    let written = 0;
    const { url } = await serve(async (_, response) => {
      for (; written < total; written++) if (!response.write(chunk)) await once(response, "drain");
      response.end();
    });
    const { body } = await createHttp().request(get(url, { idleTimeoutMs: 100 }));
    let last = -1;
    await vi.waitFor(
      () => {
        const before = last;
        last = written;
        expect(written).toBe(before);
      },
      { interval: 300, timeout: 10_000 },
    );
    // What is missing lies in the kernel's buffers and ours; without back-pressure nothing would be missing.
    expect(written).toBeLessThan(total / 2);
    let bytes = 0;
    for await (const piece of body) bytes += piece.length;
    expect(bytes).toBe(total * chunk.length);
  });
});

describe("ending an outbound request", () => {
  const endless = (_: IncomingMessage, response: ServerResponse) => void response.write("x");

  test.for<[string, (response: OutboundResponse, controller: AbortController) => unknown]>([
    ["abort", (_, controller) => controller.abort()],
    ["cancel", (response) => response.cancel()],
    ["return", (response) => response.body.return?.()],
  ])("%s closes the connection", async ([, end]) => {
    const { url, seen } = await serve(endless);
    const controller = new AbortController();
    const response = await createHttp().request(get(url, { signal: controller.signal }));
    await response.body.next();
    await end(response, controller);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test("abort fails a read that waits, and one before the headers", async () => {
    const { url, seen } = await serve(endless);
    const controller = new AbortController();
    const { body } = await createHttp().request(get(url, { signal: controller.signal }));
    await body.next();
    const read = body.next();
    controller.abort();
    expect(await kindOf(read)).toBe("aborted");

    const silent = await serve(() => undefined);
    const early = new AbortController();
    const request = createHttp().request(get(silent.url, { signal: early.signal }));
    await vi.waitFor(() => expect(silent.seen.requests).toBe(1));
    early.abort();
    expect(await kindOf(request)).toBe("aborted");
    await vi.waitFor(() => expect(silent.seen.closedConnections).toBe(1));
    expect(seen.requests).toBe(1);
  });

  test("abort stops a body in pieces that the server is slow to read", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<IncomingMessage>();
    const { url, seen } = await serve(arrive);
    const controller = new AbortController();
    const body = Array.from({ length: 64 }, () => Buffer.alloc(1024 * 1024));
    const request = createHttp().request(get(url, { method: "POST", body, signal: controller.signal }));
    const incoming = await arrived;
    controller.abort();
    expect(await kindOf(request)).toBe("aborted");
    let bytes = 0;
    incoming
      .on("error", () => undefined)
      .on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
    expect(bytes).toBeLessThan(32 * 1024 * 1024);
  });

  test("an answer that comes before the body is out is taken, and its connection given up", async () => {
    const { url, seen } = await serve((_, response) => response.writeHead(413).end("too much"));
    const body = Array.from({ length: 64 }, () => Buffer.alloc(1024 * 1024));
    const response = await createHttp().request(get(url, { method: "POST", body }));
    expect([response.status, await readAll(response)]).toEqual([413, "too much"]);
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test("a signal that has fired already, or while it connects, sends nothing", async () => {
    const { url, seen } = await serve(endless);
    const http = createHttp();
    expect(await kindOf(http.request(get(url, { signal: AbortSignal.abort() })))).toBe("aborted");
    const controller = new AbortController();
    const request = http.request(get(url, { signal: controller.signal }));
    controller.abort();
    expect(await kindOf(request)).toBe("aborted");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
    expect(seen.requests).toBe(0);
  });

  test("leaves a connection alone when it comes after the end", async () => {
    const { url, seen } = await serve((_, response) => response.end("x"));
    const controller = new AbortController();
    const http = createHttp();
    const response = await http.request(get(url, { signal: controller.signal }));
    await readAll(response);
    controller.abort();
    response.cancel();
    expect((await response.body.next()).done).toBe(true);
    await readAll(await http.request(get(url)));
    expect(seen.closedConnections).toBe(0);
  });

  test("closing the client fails what runs", async () => {
    const { url } = await serve(endless);
    const http = createHttp();
    const { body } = await http.request(get(url));
    await body.next();
    const read = body.next();
    await http.close();
    expect(await kindOf(read)).toBe("reset");
  });
});

describe("that a request was sent whole", () => {
  const pieces = Array.from({ length: 64 }, () => Buffer.alloc(1024 * 1024));

  test.for<[string, OutboundRequest["body"]]>([
    ["without a body", undefined],
    ["with a text", "a text"],
    ["with bytes", Buffer.alloc(100_000)],
    ["with pieces", pieces.slice(0, 3)],
  ])("is reported once, before its answer: %s", async ([, body]) => {
    const order: string[] = [];
    const { url } = await serve((request, response) => {
      request.resume().on("end", () => response.end("x"));
    });
    const more = {
      method: "POST",
      ...(body === undefined ? {} : { body }),
      onSent: () => void order.push("sent"),
    } as const;
    const response = await createHttp().request(get(url, more));
    order.push("answered");
    await readAll(response);
    expect(order).toEqual(["sent", "answered"]);
  });

  test.for(["taken on", "ended from this side"] as const)(
    "is not reported half way: then it is %s",
    async (then) => {
      const arrived = Promise.withResolvers<IncomingMessage>();
      const { url, seen } = await serve((request, response) => {
        request.on("end", () => response.end("x")).on("error", () => undefined);
        arrived.resolve(request);
      });
      const controller = new AbortController();
      const onSent = vi.fn();
      const request = createHttp().request(
        get(url, { method: "POST", body: pieces, signal: controller.signal, onSent }),
      );
      // The server reads none of it, and the buffers between take far less.
      const incoming = await arrived.promise;
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      expect(onSent).not.toHaveBeenCalled();
      if (then === "taken on") {
        incoming.resume();
        await readAll(await request);
        expect(onSent).toHaveBeenCalledTimes(1);
      } else {
        controller.abort();
        expect(await kindOf(request)).toBe("aborted");
        incoming.resume();
        await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
        expect(onSent).not.toHaveBeenCalled();
      }
    },
  );

  test("is not reported where there was no connection", async () => {
    const onSent = vi.fn();
    const { url } = await serve(() => undefined);
    for (const resource of opened.splice(0)) await resource.close();
    expect(await kindOf(createHttp().request(get(url, { onSent })))).toBe("connect");
    expect(onSent).not.toHaveBeenCalled();
  });
});

describe("an answer that fails", () => {
  const ok = "HTTP/1.1 200 OK\r\n";

  test.for<[string, string]>([
    ["a length", `${ok}content-length: 10\r\n\r\nhalf`],
    ["chunks", `${ok}transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n`],
    ["chunks, inside one", `${ok}transfer-encoding: chunked\r\n\r\n8\r\nhalf`],
    [
      "chunks, with connection: close",
      `${ok}transfer-encoding: chunked\r\nconnection: close\r\n\r\n4\r\nhalf\r\n`,
    ],
    ["a length, with connection: close", `${ok}content-length: 10\r\nconnection: close\r\n\r\nhalf`],
  ])("is reset after its bytes when it is cut short of %s", async ([, answer]) => {
    for (const cut of [(socket: Socket) => socket.destroy(), (socket: Socket) => socket.resetAndDestroy()]) {
      const { url } = await serveBytes(answer, cut);
      const { body } = await createHttp().request(get(url));
      let text = "";
      const read = (async () => {
        for await (const chunk of body) text += chunk;
      })();
      expect(await kindOf(read)).toBe("reset");
      expect("half".startsWith(text)).toBe(true);
    }
  });

  test.for<[OutboundHttpErrorKind, string, string]>([
    ["protocol", "of unknowable length", `${ok}\r\nhalf`],
    ["protocol", "compressed unasked", `${ok}content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx`],
    ["protocol", "that is not HTTP", "SSH-2.0-x\r\n"],
    ["protocol", "with endless headers", `${ok}x: ${"y".repeat(40_000)}\r\n\r\n`],
    ["too_large", "announced as too long", `${ok}content-length: 11\r\n\r\n`],
  ])("is %s when %s", async ([kind, , answer]) => {
    const { url } = await serveBytes(answer, (socket) => socket.end());
    expect(await kindOf(createHttp().request(get(url, { maxResponseBytes: 10 })))).toBe(kind);
  });

  test("is too large once it runs past the limit", async () => {
    const { url, seen } = await serve((_, response) => {
      response.write("0123456789");
      response.write("x");
    });
    const { body } = await createHttp().request(get(url, { maxResponseBytes: 10 }));
    expect(await kindOf(Array.fromAsync(body))).toBe("too_large");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(1));
  });

  test("is a time-out when headers or the next bytes stay away", async () => {
    const { url, seen } = await serve(({ url: path }, response) => {
      if (path === "/body") response.write("x");
    });
    const http = createHttp();
    expect(await kindOf(http.request(get(url, { headersTimeoutMs: 50 })))).toBe("timeout");
    const { body } = await http.request(get(`${url}body`, { idleTimeoutMs: 50 }));
    expect(await kindOf(Array.fromAsync(body))).toBe("timeout");
    await vi.waitFor(() => expect(seen.closedConnections).toBe(2));
  });

  test("is a failed connection when nobody listens or the address makes no sense, and its message hides the address", async () => {
    const server = createTcpServer();
    const url = await listen(server);
    server.close();
    await once(server, "close");
    for (const address of [url, "http://", "ftp://127.0.0.1/"]) {
      const error = await createHttp()
        .request(get(address))
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: "connect", message: "No connection could be made." });
    }
  });

  test("is a failed connection when it takes too long", async () => {
    // A TLS handshake that nobody answers.
    const { url } = await serveBytes("", () => undefined);
    const http = createHttp({ connectTimeoutMs: 50 });
    expect(await kindOf(http.request(get(url.replace("http:", "https:"))))).toBe("connect");
  });
});
