import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { type SpeechServer, startSpeechServer } from "../../../test/support/services/speech-server.ts";
import { DomainError } from "../../runtime/domain-error.ts";

const origin = "https://app.example";
const listPath = "/media.speech.v1.SpeechService/ListSpeechModels";
const synthesizePath = "/media.speech.v1.SpeechService/Synthesize";

/** A preflight as browsers send it. */
function preflight({ baseUrl }: SpeechServer, from: string, path = listPath): Promise<Response> {
  const headers = {
    origin: from,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,connect-protocol-version,content-type",
  };
  return fetch(baseUrl + path, { method: "OPTIONS", headers });
}

function call(
  { baseUrl }: SpeechServer,
  headers: Record<string, string>,
  path = listPath,
): Promise<Response> {
  const json = { "content-type": "application/json" };
  return fetch(baseUrl + path, { method: "POST", headers: { ...json, ...headers }, body: "{}" });
}

/** The names in a header that lists some, in lower case. */
function namesIn(response: Response, header: string): string[] {
  return (response.headers.get(header) ?? "").toLowerCase().split(/\s*,\s*/);
}

function corsHeaders({ headers }: Response): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-"));
}

const start = (handlers: Parameters<typeof startSpeechServer>[0] = {}) =>
  startSpeechServer({ corsOrigins: ["https://other.example", origin], ...handlers });

describe("a page of a listed origin", () => {
  test("may send all that Connect and gRPC-Web need, and its key", async () => {
    await using server = await start();
    const response = await preflight(server, origin);
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(response.headers.get("vary")).toBe("Origin");
    expect(namesIn(response, "access-control-allow-methods")).toEqual(
      expect.arrayContaining(["post", "get"]),
    );
    expect(namesIn(response, "access-control-allow-headers")).toEqual(
      expect.arrayContaining([
        "authorization",
        "x-request-id",
        "content-type",
        "connect-protocol-version",
        "connect-timeout-ms",
        "grpc-timeout",
        "x-grpc-web",
        "x-user-agent",
      ]),
    );
    expect(Number(response.headers.get("access-control-max-age"))).toBeGreaterThan(0);
  });

  test("may read the answer, how a gRPC-Web call ended and what the request was called", async () => {
    await using server = await start();
    const response = await call(server, { origin });
    expect(await response.json()).toMatchObject({ models: [{ id: "acme/one" }] });
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(namesIn(response, "access-control-expose-headers")).toEqual(
      expect.arrayContaining(["grpc-status", "grpc-message", "x-request-id"]),
    );
    expect(response.headers.get("x-request-id")).toMatch(/^req-/);
    expect(response.headers.get("vary")).toBe("Origin");
  });

  test("may read errors and streams as well", async () => {
    const listSpeechModels = () => {
      throw new DomainError(ErrorReason.KEY_MISSING, "no key");
    };
    await using server = await start({ handlers: { listSpeechModels } });
    const refused = await call(server, { origin });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, origin]);
    const contentType = "application/connect+json";
    const streamed = await call(server, { origin, "content-type": contentType }, synthesizePath);
    expect(streamed.headers.get("access-control-allow-origin")).toBe(origin);
    expect(streamed.headers.get("content-type")).toBe(contentType);
    await streamed.body?.cancel();
    const missing = await call(server, { origin }, "/nothing");
    expect([missing.status, missing.headers.get("access-control-allow-origin")]).toEqual([404, origin]);
  });

  test("gets the same over HTTP/2", async () => {
    await using server = await start();
    const session = connect(server.baseUrl);
    const ask = async (method: string, more: Record<string, string> = {}) => {
      const stream = session.request({ ":method": method, ":path": listPath, origin, ...more });
      stream.end(method === "POST" ? "{}" : undefined);
      const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
      stream.resume();
      await once(stream, "end");
      return [headers[":status"], headers["access-control-allow-origin"]];
    };
    expect(await ask("OPTIONS", { "access-control-request-method": "POST" })).toEqual([204, origin]);
    expect(await ask("POST", { "content-type": "application/json" })).toEqual([200, origin]);
    session.close();
  });
});

describe("a page of any other origin", () => {
  test.for([
    "https://evil.example",
    "http://app.example",
    "https://app.example:8443",
    "https://APP.example",
    "https://app.example.evil.example",
    "null",
  ])("gets no leave: %s", async (other) => {
    await using server = await start();
    const asked = await preflight(server, other);
    const answered = await call(server, { origin: other });
    expect([corsHeaders(asked), corsHeaders(answered)]).toEqual([[], []]);
    expect(asked.ok).toBe(false);
    expect([asked.headers.get("vary"), answered.headers.get("vary")]).toEqual(["Origin", "Origin"]);
  });
});

test("who is no page is served as ever", async () => {
  await using server = await start();
  const response = await call(server, {});
  expect([response.status, corsHeaders(response)]).toEqual([200, []]);
});

test("without listed origins nobody gets leave", async () => {
  await using server = await startSpeechServer();
  const asked = await preflight(server, origin);
  const answered = await call(server, { origin });
  expect([corsHeaders(asked), corsHeaders(answered)]).toEqual([[], []]);
  expect([asked.ok, answered.status, answered.headers.get("vary")]).toEqual([false, 200, null]);
});
