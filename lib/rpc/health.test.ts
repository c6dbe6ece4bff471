import { createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "../../gen/health/v1/health_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { startSpeechServer, stockTransport } from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { livenessService, ProcessHealth, type Readiness } from "./health.ts";

const speech = SpeechService.typeName;

function healthClient(readiness: Readiness) {
  const health = new ProcessHealth(readiness);
  return { health, client: createClient(Health, createRouterTransport(health.routes([speech]))) };
}

describe("grpc.health.v1", () => {
  test("answers readiness for the process and its services, liveness for its own name", async () => {
    let problems: string[] = [];
    const { client } = healthClient(async () => problems);
    const statuses = async () =>
      Promise.all(
        ["", speech, livenessService].map(async (service) => (await client.check({ service })).status),
      );
    expect(await statuses()).toEqual([ServingStatus.SERVING, ServingStatus.SERVING, ServingStatus.SERVING]);
    problems = ["database away"];
    expect(await statuses()).toEqual([
      ServingStatus.NOT_SERVING,
      ServingStatus.NOT_SERVING,
      ServingStatus.SERVING,
    ]);
    await expect(client.check({ service: "acme.v1.Unknown" })).rejects.toThrow("unknown service");
  });

  test("lists them all with one look at the readiness", async () => {
    let looks = 0;
    const { client } = healthClient(async () => {
      looks += 1;
      return ["database away"];
    });
    expect((await client.list({})).statuses).toMatchObject({
      "": { status: ServingStatus.NOT_SERVING },
      [speech]: { status: ServingStatus.NOT_SERVING },
      [livenessService]: { status: ServingStatus.SERVING },
    });
    expect(looks).toBe(1);
  });

  test("notifies a watcher of every change, and of draining last", async () => {
    let problems: string[] = [];
    const { health, client } = healthClient(async () => problems);
    const seen: ServingStatus[] = [];
    const watch = (async () => {
      for await (const { status } of client.watch({ service: speech })) seen.push(status);
    })();
    await waitUntil(() => seen.at(-1) === ServingStatus.SERVING);
    problems = ["database away"];
    await waitUntil(() => seen.at(-1) === ServingStatus.NOT_SERVING);
    problems = [];
    await waitUntil(() => seen.at(-1) === ServingStatus.SERVING);
    health.startDraining();
    await watch;
    expect(seen).toEqual([1, 2, 1, 2]);
  });

  test("keeps watching a service that it does not know, as the protocol asks", async () => {
    const { client } = healthClient(async () => []);
    const controller = new AbortController();
    const watch = client.watch({ service: "acme.v1.Unknown" }, { signal: controller.signal });
    const statuses = watch[Symbol.asyncIterator]();
    expect((await statuses.next()).value?.status).toBe(ServingStatus.SERVICE_UNKNOWN);
    const next = statuses.next();
    controller.abort();
    await expect(next).rejects.toThrow();
  });

  test("ends a watch when its client leaves", async () => {
    let looks = 0;
    await using server = await startSpeechServer({
      readiness: async () => {
        looks += 1;
        return [];
      },
    });
    const client = createClient(Health, stockTransport("gRPC", server.baseUrl));
    const controller = new AbortController();
    const statuses = client.watch({}, { signal: controller.signal })[Symbol.asyncIterator]();
    await statuses.next();
    controller.abort();
    await expect(statuses.next()).rejects.toThrow();
    await server.drain({ delayMs: 0, timeoutMs: 60_000 });
    expect(looks).toBeGreaterThan(0);
  });
});

describe("the probes", () => {
  test("say that the process lives, whatever its readiness, and why it is not ready", async () => {
    let readiness: Readiness = async () => [];
    await using server = await startSpeechServer({ readiness: () => readiness() });
    const probe = async (path: string) => {
      const response = await fetch(`${server.baseUrl}${path}`);
      return [response.status, await response.json()];
    };
    expect(await probe("/healthz")).toEqual([200, { status: "ok" }]);
    expect(await probe("/readyz")).toEqual([200, { status: "ready" }]);

    readiness = async () => ["database away"];
    expect(await probe("/readyz")).toEqual([503, { status: "not ready", problems: ["database away"] }]);
    readiness = () => Promise.reject(new Error("connect 10.0.0.7 refused"));
    expect(await probe("/readyz")).toEqual([
      503,
      { status: "not ready", problems: ["readiness check failed"] },
    ]);

    readiness = async () => [];
    server.health.startDraining();
    expect(await probe("/readyz")).toEqual([503, { status: "not ready", problems: ["draining"] }]);
    expect(await probe("/healthz")).toEqual([200, { status: "ok" }]);
  });

  test("answer HEAD without a body and nothing but GET and HEAD", async () => {
    await using server = await startSpeechServer();
    const head = await fetch(`${server.baseUrl}/readyz`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await fetch(`${server.baseUrl}/readyz`, { method: "POST" })).status).toBe(404);
  });
});
