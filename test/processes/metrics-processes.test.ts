import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { ProcessName } from "../../commands/stack/processes.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { startChild } from "../support/processes/child.ts";
import { type ProcessStack, startProcessStack } from "../support/processes/process-stack.ts";
import { bytesOf, speak } from "../support/processes/standalone.ts";
import { parsePrometheusText, scrape, sumOf } from "../support/prometheus-text.ts";

let database: TestDatabase;
let starting: Promise<ProcessStack> | undefined;
let stack: ProcessStack;
let ports: Readonly<Record<ProcessName, number>>;

beforeAll(async () => {
  database = await createTestDatabase();
  // No broker: what waits for one can be seen.
  starting = startProcessStack({ databaseUrl: database.url, env: { METRICS_PORT: "0" } });
  stack = await starting;
  const portOf = (url: string) => Number(new URL(url).port);
  ports = {
    gateway: await stack.processes.child("gateway").listeningPort("metrics"),
    speech: portOf(stack.urls.speech),
    image: portOf(stack.urls.image),
    account: portOf(stack.urls.account),
    usage: portOf(stack.urls.usage),
    destination: portOf(stack.urls.destination),
  };
}, 120_000);

afterAll(async () => {
  // Also when its start took longer than a test may wait.
  await (await starting)?.stop();
  await database?.drop();
}, 120_000);

const say = async () => {
  const baseUrl = new URL(stack.restUrl).origin;
  const body = { model: "local/flite", voice: "slt", input: "Hello." };
  const response = await speak({ baseUrl }, stack.inferenceKey, body);
  await bytesOf(response);
  return response.status;
};

test.for([
  ["gateway", "http_server_active_requests"],
  ["speech", "media_gateway_publisher_pending"],
  ["image", "media_gateway_breaker_open"],
  ["account", "media_gateway_holds_open"],
  ["usage", "media_gateway_database_connections"],
  ["destination", "media_gateway_destinations_enabled"],
] as const)("%s tells its own figures and those of a process: %s", async ([process, name]) => {
  const names = (await scrape(ports[process])).map((series) => series.name);
  expect(names).toEqual(expect.arrayContaining([name, "process_cpu_seconds_total"]));
});

test("what waits for a bus that is away, and for its events, is told", async () => {
  expect(await say()).toBe(200);
  const speech = async () => scrape(ports.speech);
  const oldest = async () =>
    sumOf(await speech(), "media_gateway_publisher_oldest_seconds", { service: "speech" });
  await expect.poll(async () => sumOf(await speech(), "media_gateway_publisher_pending")).toBe(1);
  const before = await oldest();
  await expect.poll(oldest).toBeGreaterThan(before);

  // Account has its event and waits to meet it; what is in the database is read anew after 5 s.
  const account = async () => scrape(ports.account);
  const poll = { timeout: 20_000 };
  await expect.poll(async () => sumOf(await account(), "media_gateway_holds_unseen"), poll).toBe(1);
  await expect
    .poll(async () => sumOf(await account(), "media_gateway_holds_unseen_oldest_seconds"), poll)
    .toBeGreaterThan(0);
  expect(sumOf(await account(), "media_gateway_consumer_connected", { group: "media.account" })).toBe(0);
});

test("a reconciliation leaves its counts in a file for Prometheus", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "reconcile.prom");
  expect(await say()).toBe(200);
  const child = startChild("commands/reconcile.ts", {
    env: {
      ACCOUNT_URL: stack.urls.account,
      USAGE_URL: stack.urls.usage,
      ADMIN_KEY_FILE: stack.keyFiles.keyFile("operator"),
    },
    args: ["--wait", "0", "--metrics-file", path],
  });
  // Usage has met no event yet, so every request differs.
  expect(await child.exited).toBe(1);
  const series = parsePrometheusText(await readFile(path, "utf8"));
  const differences = sumOf(series, "media_gateway_reconcile_differences");
  expect(differences).toBeGreaterThan(0);
  expect(child.lines.at(-1)).toContain(`${differences} differences`);
});

test("the gateway's public port tells no metrics, and its metrics port nothing else", async () => {
  const origin = new URL(stack.restUrl).origin;
  expect((await fetch(`${origin}/metrics`)).status).toBe(404);
  for (const path of ["/healthz", "/api/v1/models", "/"])
    expect((await fetch(`http://127.0.0.1:${ports.gateway}${path}`)).status).toBe(404);
});

test("the gateway serves without metrics when they are off, and when their port is taken", async () => {
  const taken = String(ports.speech);
  for (const port of ["off", taken]) {
    await stack.processes.stop("gateway");
    await stack.processes.restart("gateway", { METRICS_PORT: port });
    expect(await say()).toBe(200);
    const { lines } = stack.processes.child("gateway");
    const opened = lines.filter((line) => line.includes('"what":"metrics"'));
    expect(opened).toEqual([]);
    const told = lines.filter((line) => line.includes("METRICS_PORT can't be opened"));
    expect(told).toHaveLength(port === taken ? 1 : 0);
  }
});
