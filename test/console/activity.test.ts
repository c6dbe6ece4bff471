import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openAiEnv, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import { type ConsolePage, needBrowser, openConsole, violationsOf } from "./open-console.ts";

const hostile = '<img src=x onerror="document.title=1"> a key with a name that goes on and on';
const phone = { viewport: { width: 390, height: 844 } };
const speeches = 7;
let gateway: TestStandalone;
/** A provider that always fails. */
let failing: OpenAiUpstream;

interface ActivityItem {
  readonly model: string;
  readonly provider_name: string;
  readonly requests: number;
  readonly usage: number;
}

beforeAll(async () => {
  failing = await startOpenAiUpstream({ otherwise: { kind: "error", status: 500 } });
  gateway = await startTestStandalone(openAiEnv(failing));
});

afterAll(async () => {
  await gateway.close();
  await failing.close();
});

beforeEach(needBrowser);

async function call<T>(path: string, key: string, body?: object, method?: string): Promise<T> {
  const response = await fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(response.ok).toBe(true);
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return (isJson ? await response.json() : await response.arrayBuffer()) as T;
}

const activity = async () => (await call<{ data: ActivityItem[] }>("/activity", gateway.managementKey)).data;

/** Billionths of a dollar; what a few requests cost is far from where a double ends. */
const nano = (usd: number) => BigInt(Math.round(usd * 1e9));

function sums(items: readonly ActivityItem[], nameOf: (item: ActivityItem) => string) {
  const byName: Record<string, { requests: number; nanoUsd: bigint }> = {};
  for (const item of items) {
    for (const name of [nameOf(item), "All"]) {
      const before = byName[name] ?? { requests: 0, nanoUsd: 0n };
      byName[name] = {
        requests: before.requests + item.requests,
        nanoUsd: before.nanoUsd + nano(item.usage),
      };
    }
  }
  return byName;
}

async function shownSums({ page }: ConsolePage, caption: string) {
  const lines = await page.getByRole("table", { name: caption }).locator("tbody tr").all();
  const cells = await Promise.all(lines.map((line) => line.locator("th, td").allTextContents()));
  return Object.fromEntries(
    cells.map(([name = "", requests, , spend = ""]) => [
      name,
      { requests: Number(requests), nanoUsd: nano(Number(spend.replace(/[$,]/g, ""))) },
    ]),
  );
}

test("without requests it says how the first one is made", async () => {
  const opened = await openConsole(gateway, { path: "/activity", keys: gateway });
  await opened.page.getByText("No requests in this time").waitFor();
  expect(await violationsOf(opened)).toEqual([]);
});

describe("with requests", () => {
  beforeAll(async () => {
    for (let index = 0; index < speeches; index++) {
      const input = `Number ${index}.`.repeat(index + 1);
      await call("/audio/speech", gateway.inferenceKey, { model: "local/flite", input });
    }
    const other = await call<{ key: string }>("/keys", gateway.managementKey, { name: hostile });
    await call("/images", other.key, { model: "local/painter", prompt: "A lighthouse" });
    const failed = await fetch(`${gateway.baseUrl}/api/v1/audio/speech`, {
      method: "POST",
      headers: { authorization: `Bearer ${other.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "openai/tts-1", voice: "alloy", input: "Hello." }),
    });
    expect(failed.ok).toBe(false);
    await failed.text();
    await waitUntil(async () => sums(await activity(), () => "").All?.requests === speeches + 2);
  });

  test.for([
    ["hour", "model"],
    ["day", "model"],
    ["hour", "provider"],
    ["day", "provider"],
  ] as const)("the numbers by %s and %s are those of GET /activity to the last digit", async ([step, by]) => {
    const opened = await openConsole(gateway, {
      path: `/activity?step=${step}&by=${by}`,
      keys: gateway,
    });
    await opened.page.getByRole("table", { name: `Activity by ${by}` }).waitFor();
    const expected = sums(await activity(), (item) => (by === "model" ? item.model : item.provider_name));
    expect(expected.All?.nanoUsd).toBeGreaterThan(0n);
    expect(await shownSums(opened, `Activity by ${by}`)).toEqual(expected);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("the file has the same numbers, step by step", async () => {
    const { page } = await openConsole(gateway, { path: "/activity?step=day", keys: gateway });
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const text = await readFile(await (await download).path(), "utf8");
    const [titles = [], ...rows] = text
      .trimEnd()
      .split("\r\n")
      .map((line) => line.split(","));
    const items = rows.map((row) => ({
      model: row[titles.indexOf("model")] ?? "",
      provider_name: "",
      requests: Number(row[titles.indexOf("requests")]),
      usage: Number(row[titles.indexOf("usage_usd")]),
    }));
    expect(sums(items, ({ model }) => model)).toEqual(sums(await activity(), ({ model }) => model));
  });

  test("four charts are drawn, and what they are stacked by is chosen and kept in the address", async () => {
    const opened = await openConsole(gateway, { path: "/activity", keys: gateway });
    const { page } = opened;
    await page.getByRole("img", { name: /^Requests by model: 9\./ }).waitFor();
    await page.getByRole("img", { name: /^Spend by model: \$0\.\d+\./ }).waitFor();
    await page.getByRole("img", { name: /^First byte how many came how soon: half ≤ / }).waitFor();
    await page.getByRole("img", { name: /^Errors by model: 1\./ }).waitFor();
    await waitUntil(async () => (await page.locator(".chart .recharts-bar-rectangle path").count()) >= 4);
    await page.getByRole("button", { name: /By$/ }).click();
    await page.getByRole("option", { name: "Key" }).click();
    await page.getByRole("table", { name: "Activity by key" }).getByText(hostile).waitFor();
    await page.getByRole("button", { name: /Time$/ }).click();
    await page.getByRole("option", { name: /30 days/ }).click();
    await page.getByText("Days are days of UTC").waitFor();
    expect(new URL(page.url()).hash).toBe("#/activity?step=day&by=key");
    expect(await page.title()).toBe("Activity · Media Gateway");
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("those without a member are a group of that name", async () => {
    const { page } = await openConsole(gateway, { path: "/activity?by=member", keys: gateway });
    await page.getByRole("table", { name: "Activity by member" }).getByText("No member").waitFor();
  });

  test("what the gateway can't answer is told, and asked again when that is wanted", async () => {
    const { page } = await openConsole(gateway, { path: "/", keys: gateway });
    const body = { error: { code: 400, message: "No", metadata: { reason: "service_unavailable" } } };
    await page.route("**/activity/series*", (route) => route.fulfill({ status: 400, json: body }));
    await page.goto(`${gateway.baseUrl}/#/activity?by=provider`);
    await page.getByRole("alert").getByText("A part of the gateway can't be reached.").waitFor();
    await page.unroute("**/activity/series*");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("table", { name: "Activity by provider" }).waitFor();
  });

  test("a key that is revoked in mid-use leaves the figures, and another one goes on", async () => {
    const made = await call<{ key: string; data: { hash: string } }>("/keys", gateway.managementKey, {
      name: "Short-lived",
      kind: "management",
    });
    const { page } = await openConsole(gateway, {
      path: "/activity",
      keys: { managementKey: made.key },
    });
    const table = page.getByRole("table", { name: "Activity by model" });
    await table.waitFor();
    await call(`/keys/${made.data.hash}`, gateway.managementKey, undefined, "DELETE");
    await page.getByText("The key stopped working").waitFor({ timeout: 60_000 });
    expect(await table.count()).toBe(1);
    await page.getByRole("textbox", { name: "Management key" }).fill(gateway.managementKey);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("The key stopped working").waitFor({ state: "detached" });
    await table.waitFor();
  });

  test.for([
    ["light", {}],
    ["dark", {}],
    ["light", phone],
    ["dark", phone],
  ] as const)("nothing keeps people out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, {
      path: "/activity?by=key",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    await opened.page.locator(".chart .recharts-bar-rectangle path").first().waitFor();
    await opened.page.getByRole("table", { name: "Activity by key" }).getByText(hostile).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });
});
