import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, get, type IncomingMessage, type ServerResponse } from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { listenOnPort, type PortListener, type PortListenerOptions } from "./port-listener.ts";

const host = "127.0.0.1";
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/** An empty SETTINGS frame, which both sides of HTTP/2 begin with. */
const emptySettings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const settingsFrameType = 4;

async function listen(options: Partial<PortListenerOptions> = {}): Promise<PortListener> {
  const listener = await listenOnPort({
    host,
    port: 0,
    handle: (request, response) => response.end(`HTTP/${request.httpVersion} ${request.url}`),
    ...options,
  });
  onTestFinished(() => listener.close({ timeoutMs: 0 }));
  return listener;
}

/** A raw connection and what came back on it so far. */
class Peer {
  readonly socket: Socket;
  received = Buffer.alloc(0);
  closed = false;

  constructor(port: number) {
    this.socket = connect({ port, host, noDelay: true });
    this.socket.on("data", (chunk) => {
      this.received = Buffer.concat([this.received, chunk]);
    });
    this.socket
      .on("error", () => undefined)
      .on("close", () => {
        this.closed = true;
      });
    onTestFinished(() => void this.socket.destroy());
  }

  /** Writes and waits until the system has taken it, so that the next write is a segment of its own. */
  send(bytes: string | Buffer): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  get text(): string {
    return this.received.toString("latin1");
  }
}

describe("choosing the protocol", () => {
  test("waits for the rest of a preface that comes in pieces", async () => {
    const { port } = await listen();
    for (const cut of [1, 3, 16, preface.length - 1]) {
      const peer = new Peer(port);
      await peer.send(preface.slice(0, cut));
      // An answered request on another connection shows that the first piece has been looked at.
      await (await fetch(`http://${host}:${port}/`)).text();
      expect(peer.received).toHaveLength(0);
      await peer.send(Buffer.concat([Buffer.from(preface.slice(cut)), emptySettings]));
      await waitUntil(() => peer.received.length >= 9);
      expect(peer.received[3]).toBe(settingsFrameType);
    }
  });

  test("takes an HTTP/1.1 request whose first bytes come alone", async () => {
    const { port } = await listen();
    for (const first of ["P", "PR", "G"]) {
      const rest = first === "G" ? "ET" : "POST".slice(first.length);
      const method = first === "PR" ? "OPFIND" : rest;
      const peer = new Peer(port);
      await peer.send(first);
      await (await fetch(`http://${host}:${port}/`)).text();
      await peer.send(
        `${method} /alone HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
      );
      await waitUntil(() => peer.closed);
      expect(peer.text).toMatch(/^HTTP\/1\.1 200 OK.*HTTP\/1\.1 \/alone/s);
    }
  });

  test("takes a request body that follows in the same segment", async () => {
    const { port } = await listen({
      handle(request, response) {
        const answer = (text: Buffer) => response.end(`got ${text}`);
        request.on("data", answer);
      },
    });
    const peer = new Peer(port);
    await peer.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
    await waitUntil(() => peer.closed);
    expect(peer.text).toContain("got hello");
  });

  test("answers 400 to what is neither", async () => {
    const { port } = await listen();
    const peer = new Peer(port);
    await peer.send("\u0016\u0003\u0001 not a request\r\n\r\n");
    await waitUntil(() => peer.closed);
    expect(peer.text).toMatch(/^HTTP\/1\.1 400/);
  });
});

describe("peers that hold connections open", () => {
  test("are dropped when they say nothing, or not enough", async () => {
    const { port } = await listen({ peekTimeoutMs: 50 });
    const silent = new Peer(port);
    const undecided = new Peer(port);
    await undecided.send("PRI * HT");
    await waitUntil(() => silent.closed && undecided.closed);
    expect([silent.text, undecided.text]).toEqual(["", ""]);
  });

  test("are dropped when the headers of a request do not end", async () => {
    const { port } = await listen({ headersTimeoutMs: 100 });
    const peer = new Peer(port);
    await peer.send("GET / HTTP/1.1\r\nhost: x\r\n");
    await waitUntil(() => peer.closed);
    expect(peer.text).toMatch(/^HTTP\/1\.1 408/);
  });

  test("are dropped when they idle between requests, on HTTP/1.1 and HTTP/2", async () => {
    const { port } = await listen({ idleTimeoutMs: 50 });
    const peer = new Peer(port);
    await peer.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const session = connectHttp2(`http://${host}:${port}`);
    await waitUntil(() => peer.closed && session.destroyed);
    expect(peer.text).toContain("HTTP/1.1 /");
  });
});

test("an HTTP/1.1 connection is ended after 500 requests, none of which fails", async () => {
  const { port } = await listen();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const connections: string[] = [];
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 502; count++) {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ host, port, agent }, resolve).on("error", reject);
    });
    ports.add(answer.socket.localPort);
    if (answer.headers.connection === "close") connections.push(`closed with ${count + 1}`);
    expect(answer.statusCode).toBe(200);
    await text(answer);
  }
  agent.destroy();
  expect(connections).toEqual(["closed with 500"]);
  expect(ports.size).toBe(2);
});

describe("closing", () => {
  test("ends idle, silent and kept connections at once", async () => {
    const listener = await listen();
    const silent = new Peer(listener.port);
    const kept = new Peer(listener.port);
    await kept.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const session = connectHttp2(`http://${host}:${listener.port}`);
    await once(session, "remoteSettings");
    await waitUntil(() => kept.text.includes("HTTP/1.1 /"));
    const goaway = once(session, "goaway");
    await listener.close({ timeoutMs: 60_000 });
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    await waitUntil(() => silent.closed && kept.closed && session.destroyed);
    await expect(fetch(`http://${host}:${listener.port}/`)).rejects.toThrow();
  });

  test("drops what still runs at its limit", async () => {
    const listener = await listen({
      handle: (_request, response) => void (response as ServerResponse).write("never ends"),
    });
    const busy = new Peer(listener.port);
    await busy.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const session = connectHttp2(`http://${host}:${listener.port}`).on("error", () => undefined);
    const stream = session.request({ ":path": "/" }).on("error", () => undefined);
    await once(stream, "response");
    await waitUntil(() => busy.text.includes("never ends"));
    await listener.close({ timeoutMs: 20 });
    await waitUntil(() => busy.closed && stream.destroyed);
  });
});

describe("over TLS", () => {
  test("both protocols are spoken on the one port", async ({ skip }) => {
    const tls = selfSignedCertificate();
    if (tls === undefined) return skip("needs the openssl command to make a certificate");
    const { port } = await listen({ tls });
    const session = connectHttp2(`https://localhost:${port}`, { ca: tls.cert });
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":path": "/two" }).setEncoding("utf8");
    const chunks: string[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.join("")).toBe("HTTP/2.0 /two");
    expect(await getOverTls(port, tls.cert)).toBe("HTTP/1.1 /one");
  });

  test("a handshake that does not end is dropped, and keeps nothing from closing", async ({ skip }) => {
    const tls = selfSignedCertificate();
    if (tls === undefined) return skip("needs the openssl command to make a certificate");
    const impatient = await listen({ tls, peekTimeoutMs: 50 });
    const silent = new Peer(impatient.port);
    await waitUntil(() => silent.closed);

    const patient = await listen({ tls });
    const handshaking = new Peer(patient.port);
    await once(handshaking.socket, "connect");
    const socket = connectTls({ port: patient.port, host: "localhost", ca: tls.cert }).on(
      "error",
      () => undefined,
    );
    await once(socket, "secureConnect");
    await patient.close({ timeoutMs: 20 });
    await waitUntil(() => handshaking.closed && socket.destroyed);
  });
});

function selfSignedCertificate(): { key: Buffer; cert: Buffer } | undefined {
  const folder = mkdtempSync(join(tmpdir(), "certificate-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  try {
    execFileSync("openssl", ["req", "-x509", ...newKey, "-out", cert, "-days", "2", ...subject], {
      stdio: "ignore",
    });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

async function getOverTls(port: number, ca: Buffer): Promise<string> {
  const agent = new TlsAgent({ ca });
  const request = httpsRequest({ host: "localhost", port, path: "/one", agent }).end();
  const [response] = (await once(request, "response")) as [AsyncIterable<Buffer>];
  let text = "";
  for await (const chunk of response) text += chunk.toString();
  return text;
}
