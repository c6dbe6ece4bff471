import { afterEach, beforeEach, expect, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { acceptWebSocket, type StandInWebSocket } from "../../test/upstreams/stand-in/stand-in-web-socket.ts";
import { OutboundHttpError } from "./outbound-error.ts";
import { openWebSocket } from "./outbound-web-socket.ts";

let standIn: StandIn;
const accepted: { readonly server: StandInWebSocket; readonly url: string; readonly key: string }[] = [];

beforeEach(async () => {
  accepted.length = 0;
  standIn = await startStandIn((_, answer) => answer.send(403, {}, "no"), {
    onUpgrade: (message, socket) => {
      const { url = "", headers } = message;
      if (url === "/refused") socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
      if (url === "/moved") socket.end("HTTP/1.1 302 Found\r\nlocation: /ws\r\ncontent-length: 0\r\n\r\n");
      if (!url.startsWith("/ws")) return;
      accepted.push({ server: acceptWebSocket(message, socket), url, key: String(headers.authorization) });
    },
  });
});
afterEach(() => standIn.close());

async function listen(path = "/ws", maxMessageBytes = 1 << 20) {
  const heard: (string | Uint8Array)[] = [];
  const controller = new AbortController();
  const socket = await openWebSocket({
    url: standIn.baseUrl + path,
    headers: { authorization: "Basic abc" },
    signal: controller.signal,
    maxMessageBytes,
    onMessage: (message) => heard.push(message),
  });
  const [{ server } = { server: undefined }] = accepted;
  if (server === undefined) throw new Error("not accepted");
  return { socket, heard, controller, server };
}

test("hears text and bytes of every length in their order", async () => {
  const { socket, heard, server } = await listen("/ws?clientId=7");
  const messages = ["one", Buffer.alloc(125, 1), Buffer.alloc(70_000, 2), "é".repeat(200), Buffer.alloc(0)];
  for (const message of messages) server.send(message);
  await waitUntil(() => heard.length === messages.length);
  expect(heard.map((each) => (typeof each === "string" ? each : Buffer.from(each)))).toEqual(messages);
  expect(accepted).toMatchObject([{ url: "/ws?clientId=7", key: "Basic abc" }]);
  socket.close();
  await socket.closed;
});

test("ends at once when it is closed or its signal fires, and says when the other side has ended it", async () => {
  const closing = await listen();
  closing.socket.close();
  await closing.socket.closed;
  await waitUntil(() => closing.server.isClosed);
  accepted.length = 0;
  const aborted = await listen();
  aborted.controller.abort();
  await aborted.socket.closed;
  await waitUntil(() => aborted.server.isClosed);
  accepted.length = 0;
  const cut = await listen();
  cut.server.cut();
  await cut.socket.closed;
});

test("ends with a message that is too long, and hands nothing of it on", async () => {
  const { socket, heard, server } = await listen("/ws", 1000);
  server.send("a".repeat(1000));
  server.send("b".repeat(1001));
  await socket.closed;
  expect(heard).toEqual(["a".repeat(1000)]);
});

test.each(["/refused", "/moved", "/neither"])(
  "refuses what does not become a websocket: %s",
  async (path) => {
    const opening = openWebSocket({
      url: standIn.baseUrl + path,
      headers: {},
      signal: AbortSignal.timeout(path === "/neither" ? 50 : 10_000),
      maxMessageBytes: 1,
      onMessage: () => undefined,
    });
    const thrown: unknown = await opening.catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(OutboundHttpError);
    expect(thrown).toMatchObject({ kind: path === "/neither" ? "aborted" : "connect" });
    expect(accepted).toEqual([]);
  },
);
