import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type LookupFunction } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import { selfSignedCertificate } from "../../../test/support/self-signed-certificate.ts";
import { lostEvent, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import type { ReceivedRequest } from "../../../test/upstreams/stand-in/stand-in-server.ts";
import { type Batch, type DeliveryContext, DeliveryError, type DestinationType } from "./contract.ts";
import { createReceiverHttp, type OwnedReceiverHttp } from "./receiver-http.ts";
import { describeInService } from "./service.suite.ts";
import type { DestinationTypeStage } from "./type-stage.suite.ts";

const loopback = { address: "127.0.0.0", prefixLength: 8, family: "ipv4" } as const;

/** A batch of two generations, one of them lost. */
export const suiteBatch: Batch = {
  id: "0b54a5c2-4b1c-4d8a-9d27-0f6f2f6a1c11",
  events: [usageEvent({ eventId: "gen-tts-1" }), lostEvent({ eventId: "gen-img-2" })],
  disclosed: { cost: true, identity: true, requestContext: true },
};

/** What an attempt needs, on real connections to the loopback. */
export function suiteContext(http: OwnedReceiverHttp, signal?: AbortSignal): DeliveryContext {
  return { http, signal: signal ?? AbortSignal.timeout(20_000), nowMs: () => Date.now() };
}

/** A client that may call the loopback, or only public addresses; closed when the test ends. */
export function suiteHttp(options: { strict?: boolean; lookup?: LookupFunction } = {}): OwnedReceiverHttp {
  const { strict = false, ...more } = options;
  const http = createReceiverHttp({
    guard: createAddressGuard({ allowedCidrs: strict ? [] : [loopback] }),
    ...more,
  });
  onTestFinished(() => http.close());
  return http;
}

/** The DeliveryError of what must fail. */
export async function deliveryErrorOf(promise: Promise<unknown>): Promise<DeliveryError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof DeliveryError) return thrown;
  throw new Error("no DeliveryError", { cause: thrown });
}

/**
 * The acceptance suite of a type: what contract.ts promises, tried against a stand-in receiver. A type's own test calls
 * it at its top level.
 */
export function describeDestinationType<C>(
  type: DestinationType<C>,
  open: () => Promise<DestinationTypeStage>,
): void {
  describe(`${type.slug} keeps the contract of a destination type`, () => {
    let stage: DestinationTypeStage;
    beforeAll(async () => {
      stage = await open();
    });
    afterAll(async () => {
      await stage?.receiver.close();
      await stage?.close?.();
    });
    const trial = new Trial(type, () => stage);
    describeSettings(trial);
    describeSending(trial);
    describeAnswers(trial);
    describeConnections(trial);
    describeInService(type, () => stage);
  });
}

/** A type on its stage. */
class Trial<C> {
  readonly type: DestinationType<C>;
  readonly #stage: () => DestinationTypeStage;

  constructor(type: DestinationType<C>, stage: () => DestinationTypeStage) {
    this.type = type;
    this.#stage = stage;
  }

  get stage(): DestinationTypeStage {
    return this.#stage();
  }

  configAt(baseUrl: string): C {
    const read = this.type.readConfig(this.stage.configAt(baseUrl));
    if ("issues" in read) throw new Error(`not valid: ${JSON.stringify(read.issues)}`);
    return read.config;
  }

  /** Delivers the batch to the stand-in, or to another address. */
  deliver(options: { baseUrl?: string; http?: OwnedReceiverHttp; signal?: AbortSignal } = {}) {
    const { baseUrl = this.stage.receiver.baseUrl, http = suiteHttp(), signal } = options;
    return this.type.deliver(suiteBatch, this.configAt(baseUrl), suiteContext(http, signal));
  }

  /** The requests that reached the stand-in while `act` ran. */
  async requestsOf(act: () => Promise<unknown>): Promise<ReceivedRequest[]> {
    const before = this.stage.receiver.requests.length;
    await act();
    return this.stage.receiver.requests.slice(before);
  }

  issuesOf(config: JsonObject): string[] {
    const read = this.type.readConfig(config);
    return "issues" in read ? read.issues.map(({ path }) => path) : [];
  }
}

function describeSettings<C>(trial: Trial<C>): void {
  const { type } = trial;
  const good = () => trial.stage.configAt("https://receiver.example");

  test("settings, once read, read the same again", () => {
    const config = trial.configAt("https://receiver.example");
    expect(type.readConfig(config as JsonObject)).toEqual({ config });
    expect(type.readConfig(JSON.parse(JSON.stringify(config)))).toEqual({ config });
  });

  test("settings that are not there, or of a wrong type, are named", () => {
    expect(trial.issuesOf({})).not.toEqual([]);
    for (const name of Object.keys(good())) {
      for (const wrong of [7, true, ["a"], { a: 1 }]) {
        expect(trial.issuesOf({ ...good(), [name]: wrong }), name).toEqual(
          expect.arrayContaining([expect.stringMatching(`^config\\.${name}`)]),
        );
      }
    }
  });

  test("secrets are names of settings", () => {
    const known = Object.keys(trial.configAt("https://receiver.example") as object);
    for (const secret of type.secrets) {
      const isKnown = known.includes(secret) || trial.issuesOf({ ...good(), [secret]: 7 }).length > 0;
      expect(isKnown, secret).toBe(true);
    }
  });

  test("its addresses are those that it calls", async () => {
    const { receiver } = trial.stage;
    const urls = type.urlsOf(trial.configAt(receiver.baseUrl));
    expect(urls.map(({ origin }) => origin)).toEqual([receiver.baseUrl]);
  });

  test("a header of its owner goes along", async () => {
    const { receiver } = trial.stage;
    const read = type.readConfig({ ...trial.stage.configAt(receiver.baseUrl), headers: { "X-Team": "a b" } });
    if ("issues" in read) throw new Error("not valid");
    const http = suiteHttp();
    const act = () => type.deliver(suiteBatch, read.config, suiteContext(http));
    const [request] = await trial.requestsOf(act);
    expect(request?.headers["x-team"]).toBe("a b");
  });

  const injections: [string, unknown][] = [
    ["x-a", "b\r\nx-c: d"],
    ["x-a", "b\nc"],
    ["x-a", "\0"],
    ["x-a", "ü"],
    ["x-a", " b"],
    ["x-a", ""],
    ["x-a", 7],
    ["x-a\r\nx-b", "c"],
    ["x a", "b"],
    ["x:a", "b"],
    ["", "b"],
    ["Host", "other.example"],
    ["Content-Length", "0"],
    ["content-type", "text/plain"],
    ["Connection", "close"],
    ["Transfer-Encoding", "chunked"],
    ["TE", "trailers"],
    ["Upgrade", "h2c"],
    ["Proxy-Authorization", "a"],
    ["Expect", "100-continue"],
    ["X-Delivery-Id", "a"],
  ];
  test.for(injections)("a header %j of %j is refused", ([name, value]) => {
    const config = { ...good(), headers: { [name]: value } } as JsonObject;
    expect(trial.issuesOf(config)).toEqual([`config.headers.${name}`]);
  });

  test("headers that it sets itself are refused, and two of one name", () => {
    for (const name of trial.stage.ownHeaders) {
      expect(trial.issuesOf({ ...good(), headers: { [name]: "a" } }), name).toHaveLength(1);
    }
    expect(trial.issuesOf({ ...good(), headers: { "x-a": "1", "X-A": "2" } })).toEqual([
      "config.headers.X-A",
    ]);
  });
}

function describeSending<C>(trial: Trial<C>): void {
  const { type } = trial;

  // contract.ts, 1.
  test("one attempt is one request, and says every event with its revision", async () => {
    const receipts: unknown[] = [];
    const requests = await trial.requestsOf(async () => receipts.push(await trial.deliver()));
    expect(requests).toHaveLength(1);
    const [request] = requests as [ReceivedRequest];
    expect(receipts).toEqual([{ status: expect.toSatisfy((status) => status >= 200 && status < 300) }]);
    const { events } = await trial.stage.read(request);
    expect(events).toEqual([
      { eventId: "gen-tts-1", revision: 1 },
      { eventId: "gen-img-2", revision: 0 },
    ]);
  });

  // contract.ts, 4.
  test("the same batch has the same body and the same delivery id, each time", async () => {
    const requests = await trial.requestsOf(async () => {
      await trial.deliver();
      await trial.deliver();
    });
    const [first, second] = requests as [ReceivedRequest, ReceivedRequest];
    expect(first.bytes.equals(second.bytes)).toBe(true);
    const [one, two] = [await trial.stage.read(first), await trial.stage.read(second)];
    expect(one.deliveryId).toBe(suiteBatch.id);
    expect(two.deliveryId).toBe(suiteBatch.id);
  });

  test("a test is marked and has no events", async () => {
    const http = suiteHttp();
    const config = trial.configAt(trial.stage.receiver.baseUrl);
    const requests = await trial.requestsOf(() => type.test(config, suiteContext(http)));
    expect(requests).toHaveLength(1);
    const [request] = requests as [ReceivedRequest];
    expect(request.headers["x-test-connection"]).toBe("true");
    expect((await trial.stage.read(request)).events).toEqual([]);
  });

  // contract.ts, 2.
  test("a test fails as an attempt does", async () => {
    trial.stage.receiver.next({ kind: "answer", status: 401 });
    const config = trial.configAt(trial.stage.receiver.baseUrl);
    const error = await deliveryErrorOf(type.test(config, suiteContext(suiteHttp())));
    expect(error).toMatchObject({ status: 401, message: expect.stringContaining("credentials") });
  });
}

function describeAnswers<C>(trial: Trial<C>): void {
  test.for([
    [429, "7", 7_000],
    [503, "7", 7_000],
    [503, "0.5", 500],
    [429, undefined, undefined],
    [503, "soon", undefined],
  ] as const)("a %d with retry-after %j", async ([status, retryAfter, retryAfterMs]) => {
    const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
    trial.stage.receiver.next({ kind: "answer", status, headers });
    expect(await deliveryErrorOf(trial.deliver())).toMatchObject({ status, retryAfterMs });
  });

  test("a retry-after that is a date", async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    trial.stage.receiver.next({ kind: "answer", status: 429, headers: { "retry-after": date } });
    const { retryAfterMs = 0 } = await deliveryErrorOf(trial.deliver());
    expect(retryAfterMs).toBeGreaterThan(3_000_000);
    expect(retryAfterMs).toBeLessThanOrEqual(3_600_000);
  });

  test.for([
    [400, "could not read"],
    [401, "credentials"],
    [403, "credentials"],
    [404, "nothing at this address"],
    [410, "gone"],
    [413, "too large"],
    [418, "refuses"],
    [500, "failed"],
    [599, "failed"],
  ] as const)("a %d: its message says %j, the receiver's words stay behind", async ([status, words]) => {
    trial.stage.receiver.next({ kind: "answer", status, body: "the secret words" });
    const error = await deliveryErrorOf(trial.deliver());
    expect(error).toMatchObject({ status, message: expect.stringContaining(words) });
    expect(error.message).not.toContain("secret");
    expect(error.cause).toBe("the secret words");
  });

  test("a web page in place of an answer", async () => {
    const headers = { "content-type": "text/html" };
    const body = "\n<!DOCTYPE html>\n<html><body>Sign in</body></html>";
    trial.stage.receiver.next({ kind: "answer", status: 200, headers, body });
    const error = await deliveryErrorOf(trial.deliver());
    expect(error).toMatchObject({ status: 200, message: "the address answers with a web page" });
  });

  test.for([301, 302, 307, 308])("a %d is not followed", async (status) => {
    const location = `${trial.stage.receiver.baseUrl}/elsewhere`;
    trial.stage.receiver.next({ kind: "answer", status, headers: { location } });
    let error: DeliveryError | undefined;
    const requests = await trial.requestsOf(async () => {
      error = await deliveryErrorOf(trial.deliver());
    });
    expect(requests).toHaveLength(1);
    expect(error).toMatchObject({ status, message: expect.stringContaining("redirects") });
  });

  test("an answer without end is left after its beginning", async () => {
    trial.stage.receiver.next({ kind: "endless", status: 500 });
    let error: DeliveryError | undefined;
    const [request] = await trial.requestsOf(async () => {
      error = await deliveryErrorOf(trial.deliver());
    });
    expect(error?.status).toBe(500);
    expect(error?.cause).toBe("x".repeat(4096));
    expect(await request?.ended).toBe("closed_by_client");
  });
}

function describeConnections<C>(trial: Trial<C>): void {
  test.for(["cut", "reset"] as const)("a connection that breaks off: %s", async (kind) => {
    trial.stage.receiver.next({ kind });
    const error = await deliveryErrorOf(trial.deliver());
    expect(error).toMatchObject({ status: undefined, message: expect.stringContaining("broke off") });
  });

  test("a refusal that breaks off is still a refusal", async () => {
    trial.stage.receiver.next({ kind: "cut", status: 403 });
    expect(await deliveryErrorOf(trial.deliver())).toMatchObject({ status: 403, cause: "the beginning" });
  });

  test.for(["hang", "stall"] as const)("a receiver that falls silent: %s", async (kind) => {
    const { receiver } = trial.stage;
    receiver.next({ kind });
    const controller = new AbortController();
    const seen = receiver.requests.length;
    const running = deliveryErrorOf(trial.deliver({ signal: controller.signal }));
    const request = await receiver.received(seen + 1);
    controller.abort(new DOMException("late", "TimeoutError"));
    expect(await running).toMatchObject({ status: undefined, message: "no answer came in time" });
    expect(await request.ended).toBe("closed_by_client");
  });

  test("an attempt that is ended before it began sends nothing", async () => {
    const signal = AbortSignal.abort();
    let error: DeliveryError | undefined;
    const requests = await trial.requestsOf(async () => {
      error = await deliveryErrorOf(trial.deliver({ signal }));
    });
    expect(requests).toEqual([]);
    expect(error?.message).toBe("the attempt was ended");
  });

  test("nothing listens there", async () => {
    const server = createTcpServer().listen(0, "127.0.0.1");
    await waitUntil(() => server.listening);
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const error = await deliveryErrorOf(trial.deliver({ baseUrl: `http://127.0.0.1:${port}` }));
    expect(error).toMatchObject({ status: undefined, message: "the connection was refused" });
  });

  test("a name that nobody knows", async () => {
    const lookup: LookupFunction = (name, _, callback) => {
      callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" }), []);
    };
    const error = await deliveryErrorOf(
      trial.deliver({ baseUrl: "http://receiver.example", http: suiteHttp({ lookup }) }),
    );
    expect(error.message).toBe("the name is not known, or its address may not be called");
  });

  test("a certificate that nobody has signed", async (context) => {
    const certificate = selfSignedCertificate();
    if (certificate === undefined) return context.skip("needs the openssl command to make a certificate");
    const server = createTlsServer(certificate, (_, response) => response.end()).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await waitUntil(() => server.listening);
    const { port } = server.address() as AddressInfo;
    const untrusted = await deliveryErrorOf(trial.deliver({ baseUrl: `https://127.0.0.1:${port}` }));
    expect(untrusted.message).toBe("its TLS certificate is not trusted");
    const plain = trial.stage.receiver.baseUrl.replace("http:", "https:");
    expect((await deliveryErrorOf(trial.deliver({ baseUrl: plain }))).message).toContain("speaks no TLS");
  });

  // contract.ts, 3.
  test("a private address is not called, by number or by name", async () => {
    const { port } = trial.stage.receiver;
    const lookup: LookupFunction = (_name, options, callback) => {
      if (options.all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
      else callback(null, "127.0.0.1", 4);
    };
    const requests = await trial.requestsOf(async () => {
      for (const host of ["127.0.0.1", "[::1]", "169.254.169.254", "receiver.example", "localhost"]) {
        const http = suiteHttp({ strict: true, lookup });
        const error = await deliveryErrorOf(trial.deliver({ baseUrl: `http://${host}:${port}`, http }));
        expect(error.message, host).toBe("the name is not known, or its address may not be called");
      }
    });
    expect(requests).toEqual([]);
  });
}
