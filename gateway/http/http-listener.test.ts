import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  bytesFrame,
  finishedFrame,
  type GatewayServerOptions,
  postSpeech,
  RawConnection,
  rawSpeechRequest,
  type SpeechHandlers,
  speechPath,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const body = JSON.stringify({ input: "Hello.", model: "acme/one" });
const whole = rawSpeechRequest([`Content-Length: ${body.length}`], body);

/** A gateway whose service says five bytes. */
function start(settings: GatewayServerOptions["settings"] = {}, options: GatewayServerOptions = {}) {
  const handlers = {
    async *synthesize() {
      yield startedFrame();
      yield bytesFrame(Buffer.from("sound"));
      yield finishedFrame();
    },
  };
  return startGatewayServer({ handlers, settings, ...options });
}

/** The statuses of the answers on a connection, in order. */
function statuses({ received }: RawConnection): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

/** Whether the gateway takes no connections any more. */
function isRefused({ baseUrl }: { baseUrl: string }): Promise<boolean> {
  return fetch(`${baseUrl}/healthz`).then(
    () => false,
    () => true,
  );
}

async function answered(client: RawConnection, ...expected: number[]): Promise<void> {
  await waitUntil(() => statuses(client).length >= expected.length);
  expect(statuses(client)).toEqual(expected);
}

describe("an answer before the body has arrived", () => {
  const anonymous = whole.replace(/Authorization: .*\r\n/, "");

  test.for([
    ["no key", anonymous, 401],
    ["a key of another kind", whole.replace(testKeys.speech, testKeys.management), 401],
    ["no such route", whole.replace(speechPath, "/none"), 404],
    ["too long", whole.replace(/Content-Length: \d+/, "Content-Length: 99999999999"), 400],
  ] as const)("comes at once (%s), and then the connection closes", async ([, request, status]) => {
    await using gateway = await start();
    using client = new RawConnection(gateway);
    client.send(request.slice(0, request.indexOf("\r\n\r\n") + 4));
    await answered(client, status);
    expect(client.received).toMatch(/\r\nconnection: close\r\n/i);
    expect(client.ended).toBe(false);
    await waitUntil(() => client.ended);
    expect(client.reset).toBe(false);
  });

  test("leaves the client time to send the rest and to read the answer", async () => {
    await using gateway = await start();
    const large = "x".repeat(8 << 20);
    using client = new RawConnection(gateway);
    client.send(
      anonymous.replace(/Content-Length: \d+/, `Content-Length: ${large.length}`).replace(body, large),
    );
    await answered(client, 401);
    await waitUntil(() => client.ended);
    expect(client.reset).toBe(false);
  });

  test("keeps the connection when the body came along", async () => {
    await using gateway = await start();
    using client = new RawConnection(gateway);
    client.send(anonymous);
    await answered(client, 401);
    expect(client.received).toMatch(/\r\nconnection: keep-alive\r\n/i);
    client.send(whole);
    await answered(client, 401, 200);
  });

  test("is all that a client gets that waits for leave to send; a good one gets its leave", async () => {
    await using gateway = await start();
    using refused = new RawConnection(gateway);
    const head = (text: string) =>
      text.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n").replace(body, "");
    refused.send(head(anonymous));
    await answered(refused, 401);
    using good = new RawConnection(gateway);
    good.send(head(whole));
    await answered(good, 100);
    good.send(body);
    await answered(good, 100, 200);
  });
});

describe("a body", () => {
  test("that comes too slowly is refused, and the connection closed", async () => {
    await using gateway = await start({ bodyTimeoutMs: 100 });
    using client = new RawConnection(gateway);
    client.send(whole.slice(0, -5));
    await answered(client, 400);
    expect(client.received).toContain("did not arrive in time");
    await waitUntil(() => client.ended);
  });

  test("that is chunked is taken, and refused once it grows too long", async () => {
    await using gateway = await start({ maxBodyBytes: 100 });
    using client = new RawConnection(gateway);
    const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    client.send(rawSpeechRequest(["Transfer-Encoding: chunked"], `${chunked(body)}0\r\n\r\n`));
    await answered(client, 200);
    client.send(rawSpeechRequest(["Transfer-Encoding: chunked"], chunked("x".repeat(101))));
    await answered(client, 200, 400);
    expect(client.received).toContain('"body_too_large"');
    await waitUntil(() => client.ended);
  });

  test("that breaks off is nobody's fault, and holds no room", async () => {
    await using gateway = await start({ maxBodyBytes: 1000, maxInflightBodyBytes: 1000 });
    const client = new RawConnection(gateway);
    client.send(rawSpeechRequest(["Content-Length: 1000"], "{"));
    await waitUntil(() => client.connected);
    client[Symbol.dispose]();
    const response = await postSpeech(gateway);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    expect(gateway.logged).not.toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("for which there is no room is refused for now", async () => {
    const settings = { maxBodyBytes: 1000, maxInflightBodyBytes: 1000, bodyTimeoutMs: 200 };
    await using gateway = await start(settings);
    using slow = new RawConnection(gateway);
    slow.send(rawSpeechRequest(["Content-Length: 1000"], "{"));
    using second = new RawConnection(gateway);
    second.send(whole);
    // Which of the two reserves first is the system's choice; one finds no room or waits the other out.
    await waitUntil(() => statuses(slow).length === 1 && statuses(second).length === 1);
    expect(statuses(slow)).toEqual([400]);
    expect([200, 503]).toContain(statuses(second)[0]);
    const third = await postSpeech(gateway);
    expect(third.status).toBe(200);
    await third.arrayBuffer();
  });
});

describe("what is no HTTP", () => {
  test.for([
    ["nonsense", "nonsense\r\n\r\n"],
    ["a URL beyond all bounds", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, /URL.*16384 bytes/],
    ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01"],
    ["a bad header", "GET /healthz HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n"],
    [
      "a header beyond all bounds",
      `GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(70_000)}\r\n\r\n`,
      /headers.*16384/,
    ],
    ["a length that is none", rawSpeechRequest(["Content-Length: abc"])],
    ["two lengths", rawSpeechRequest(["Content-Length: 5", "Content-Length: 6"])],
    ["a length and chunks", rawSpeechRequest(["Content-Length: 5", "Transfer-Encoding: chunked"])],
  ] as const)("is answered as JSON: %s", async ([, text, message = /HTTP\/1\.1/]) => {
    await using gateway = await start();
    using client = new RawConnection(gateway);
    client.send(text);
    await answered(client, 400);
    await waitUntil(() => client.ended);
    expect(client.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(client.received).toMatch(/\r\nx-request-id: req-/);
    const json = JSON.parse(client.received.slice(client.received.indexOf("\r\n\r\n"))) as object;
    expect(json).toMatchObject({
      error: {
        code: 400,
        message: "Invalid request parameters",
        metadata: { reason: "invalid_body", issues: [{ path: "", message: expect.stringMatching(message) }] },
      },
    });
  });

  test("with headers that come too slowly is told so", async () => {
    await using gateway = await start({ bodyTimeoutMs: 50 });
    using client = new RawConnection(gateway);
    client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n");
    await answered(client, 400);
    expect(client.received).toContain("headers must arrive sooner");
  });

  test("in the middle of a body is answered under that request's id", async () => {
    await using gateway = await start();
    using client = new RawConnection(gateway);
    client.send(rawSpeechRequest(["Transfer-Encoding: chunked", "X-Request-Id: mine"], "zz\r\n"));
    await answered(client, 400);
    expect(client.received).toContain("x-request-id: mine\r\n");
    await waitUntil(() => client.ended);
    const line = await waitUntil(() => gateway.logged.find(({ request_id: id }) => id === "mine"));
    expect(line).toMatchObject({ status: 400 });
  });

  test("behind a running answer cuts it rather than mixing with it", async () => {
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await new Promise(() => undefined);
      },
    };
    await using gateway = await start({}, { handlers });
    using client = new RawConnection(gateway);
    client.send(whole);
    await waitUntil(() => client.received.includes("sound"));
    client.send("nonsense\r\n\r\n");
    await waitUntil(() => client.ended);
    expect(statuses(client)).toEqual([200]);
    expect(client.received).not.toContain("0\r\n\r\n");
  });

  test("or comes too slowly is answered and closed", async () => {
    await using gateway = await start({ bodyTimeoutMs: 100 });
    using client = new RawConnection(gateway);
    client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n");
    await answered(client, 400);
    await waitUntil(() => client.ended);
  });
});

test("requests on one connection are answered in their order, errors and audio alike", async () => {
  await using gateway = await start();
  using client = new RawConnection(gateway);
  const bad = rawSpeechRequest(["Content-Length: 2"], "{}");
  const none = "GET /none HTTP/1.1\r\nHost: a\r\n\r\n";
  client.send(whole + bad + none + whole.replace(/Authorization: .*\r\n/, "") + whole);
  await answered(client, 200, 400, 404, 401, 200);
  await waitUntil(() => client.received.split("sound").length === 3);
  client.send(whole);
  await waitUntil(() => client.received.split("sound").length === 4);
  expect(client.ended).toBe(false);
});

describe("audio behind audio on one connection", () => {
  const frame = Buffer.alloc(64 * 1024, "a");

  test("waits for its turn, however large both are", async () => {
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        for (let index = 0; index < 16; index++) yield bytesFrame(frame);
        yield finishedFrame();
      },
    };
    await using gateway = await start({}, { handlers });
    using client = new RawConnection(gateway);
    client.send(whole + whole);
    await waitUntil(() => client.received.split("\r\n0\r\n\r\n").length === 3);
    expect(client.received.match(/a{64}/g)).toHaveLength(2 * 16 * 1024);
  });

  test("hears of the client's leaving, and holds nothing", async () => {
    let begun = 0;
    let aborted = 0;
    const handlers: SpeechHandlers = {
      async *synthesize(_request, { signal }) {
        begun++;
        signal.addEventListener("abort", () => {
          aborted++;
        });
        yield startedFrame();
        yield bytesFrame(frame);
        await new Promise(() => undefined);
      },
    };
    const settings = { maxBodyBytes: body.length, maxInflightBodyBytes: 4 * body.length, bodyTimeoutMs: 100 };
    await using gateway = await start(settings, { handlers });
    for (const round of [1, 2, 3]) {
      const client = new RawConnection(gateway);
      client.send(whole + whole);
      await waitUntil(() => begun === 2 * round);
      client[Symbol.dispose]();
      await waitUntil(() => aborted === 2 * round);
      await waitUntil(() => gateway.logged.length === 2 * round);
    }
    expect(gateway.logged).toEqual(Array(6).fill(expect.objectContaining({ reason: "cancelled" })));
  });
});

describe("closing", () => {
  test("lets a running answer end, has new ones say that they close, then refuses connections", async () => {
    const rest = Promise.withResolvers<void>();
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await rest.promise;
        yield finishedFrame();
      },
    };
    await using gateway = await start({}, { handlers });
    using client = new RawConnection(gateway);
    client.send(whole);
    await waitUntil(() => client.received.includes("sound"));
    using idle = new RawConnection(gateway);
    await waitUntil(() => idle.connected);
    const closed = gateway.close({ delayMs: 200, timeoutMs: 60_000 });
    const during = await fetch(`${gateway.baseUrl}/healthz`);
    expect([during.status, during.headers.get("connection")]).toEqual([200, "close"]);
    await during.arrayBuffer();
    await waitUntil(() => idle.ended);
    await expect(fetch(`${gateway.baseUrl}/healthz`)).rejects.toThrow();
    expect(client.ended).toBe(false);
    rest.resolve();
    await closed;
    expect(client.received).toMatch(/sound\r\n0\r\n\r\n$/);
  });

  test("is shown by /readyz and not by /healthz", async () => {
    await using gateway = await start();
    const ask = async (path: string) => {
      const response = await fetch(gateway.baseUrl + path);
      return [response.status, await response.json()];
    };
    expect(await ask("/readyz")).toEqual([200, { status: "ready" }]);
    const closed = gateway.close({ delayMs: 200, timeoutMs: 60_000 });
    expect(await ask("/readyz")).toEqual([503, { status: "not ready", problems: ["draining"] }]);
    expect(await ask("/healthz")).toEqual([200, { status: "ok" }]);
    await closed;
  });

  test("serves the next request on a connection whose answer had begun before, then ends it", async () => {
    const gate = Promise.withResolvers<void>();
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await gate.promise;
        yield finishedFrame();
      },
    };
    await using gateway = await start({}, { handlers });
    using client = new RawConnection(gateway);
    client.send(whole);
    await waitUntil(() => client.received.includes("sound"));
    const closed = gateway.close({ delayMs: 1500, timeoutMs: 60_000 });
    await waitUntil(() => isRefused(gateway));
    gate.resolve();
    await waitUntil(() => client.received.endsWith("\r\n0\r\n\r\n"));
    client.send(whole);
    await waitUntil(() => client.ended);
    await closed;
    expect(client.received.match(/connection: [-\w]+/gi)).toEqual([
      "Connection: keep-alive",
      "connection: close",
    ]);
    expect(client.received.split("sound\r\n0\r\n\r\n")).toHaveLength(3);
  });

  test("drops what still runs at its limit", async () => {
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await new Promise(() => undefined);
      },
    };
    await using gateway = await start({}, { handlers });
    using client = new RawConnection(gateway);
    client.send(whole);
    await waitUntil(() => client.received.includes("sound"));
    await gateway.close({ delayMs: 0, timeoutMs: 50 });
    await waitUntil(() => client.ended);
    expect(client.received).not.toMatch(/0\r\n\r\n$/);
  });
});

test("the port speaks TLS when it has a certificate", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-tls-"));
  const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const files = ["-keyout", keyFile, "-out", certFile, "-days", "1"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...files, ...subject], { stdio: "ignore" });
  const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  rmSync(folder, { recursive: true });
  await using gateway = await start({}, { tls });
  const audio = await new Promise<string>((resolve, reject) => {
    const headers = { authorization: `Bearer ${testKeys.speech}`, "content-type": "application/json" };
    const request = httpsRequest(gateway.baseUrl + speechPath, { method: "POST", ca: tls.cert, headers });
    request.on("error", reject).on("response", (response) => {
      let text = "";
      response.on("data", (part: Buffer) => {
        text += part.toString("latin1");
      });
      response.on("end", () => resolve(text));
    });
    request.end(body);
  });
  expect(audio).toBe("sound");
});
