import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openAiEnv, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import { type ConsolePage, needBrowser, openConsole, violationsOf } from "./open-console.ts";

const hostile = '<img src=x onerror="document.title=1">';
const longName = `${hostile}${"an-endless-session-name".repeat(6)}`;
const phone = { viewport: { width: 390, height: 844 } };
let gateway: TestStandalone;
/** A provider that always fails. */
let failing: OpenAiUpstream;

beforeAll(async () => {
  failing = await startOpenAiUpstream({ otherwise: { kind: "error", status: 500 } });
  gateway = await startTestStandalone(openAiEnv(failing));
});

afterAll(async () => {
  await gateway.close();
  await failing.close();
});

beforeEach(needBrowser);

async function speak(session: string, input = "Hello."): Promise<string> {
  const response = await call("/audio/speech", gateway.inferenceKey, {
    model: "local/flite",
    input,
    session_id: session,
  });
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  return response.headers.get("x-generation-id") ?? "";
}

function call(path: string, key: string, body?: object, method?: string): Promise<Response> {
  return fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function listed(query: string): Promise<{ id: string; usage: number; latency: number }[]> {
  const response = await call(`/generations?${query}`, gateway.managementKey);
  return ((await response.json()) as { data: { id: string; usage: number; latency: number }[] }).data;
}

const rowsOf = ({ page }: ConsolePage) => page.getByRole("table").locator("tbody tr");
const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

test("without requests it says how the first one is made, and shows it when it ends", async () => {
  const opened = await openConsole(gateway, { path: "/requests", keys: gateway });
  await opened.page.getByText("No requests yet").waitFor();
  expect(await violationsOf(opened)).toEqual([]);
  await speak("first");
  await rowsOf(opened).getByText("Speech · Local").waitFor();
});

describe("with requests", () => {
  let ids: string[];

  beforeAll(async () => {
    ids = [];
    for (const session of ["one", "two", hostile, longName.slice(0, 256)]) ids.push(await speak(session));
    for (let index = 0; index < 56; index++) await speak("many", `Number ${index}.`);
    await waitUntil(async () => (await listed("session_id=many&limit=100")).length === 56);
  });

  test("pages follow each other, and every request stands in them once", async () => {
    const opened = await openConsole(gateway, { path: "/requests?session=many", keys: gateway });
    await waitUntil(async () => (await rowsOf(opened).count()) === 50);
    await opened.page.getByRole("button", { name: "Show older ones" }).click();
    await waitUntil(async () => (await rowsOf(opened).count()) === 56);
    expect(await opened.page.getByRole("button", { name: "Show older ones" }).count()).toBe(0);
    const shown = await rowsOf(opened)
      .locator("a")
      .evaluateAll((links) => links.map((link) => (link as { hash?: string }).hash ?? ""));
    const all = await listed("session_id=many&limit=100");
    expect(shown.map((hash) => /^#\/requests\/([^?]+)/.exec(hash)?.[1])).toEqual(all.map(({ id }) => id));
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("what is new waits while one reads, and comes by itself while nobody does", async () => {
    const opened = await openConsole(gateway, { path: "/requests", keys: gateway });
    const first = rowsOf(opened).first().locator("a");
    await first.waitFor();
    await first.focus();
    const before = await first.getAttribute("href");
    const place = await first.boundingBox();
    await speak("while-read");
    const button = opened.page.getByRole("button", { name: "1 new request" });
    await button.waitFor();
    expect(await first.getAttribute("href")).toBe(before);
    expect(await first.boundingBox()).toEqual(place);
    await button.click();
    await waitUntil(async () => (await first.getAttribute("href")) !== before);
    await opened.page.getByRole("heading", { level: 1 }).focus();
    await opened.page.mouse.move(600, 10);
    const id = await speak("while-idle");
    await waitUntil(async () => (await first.getAttribute("href"))?.includes(id));
  });

  test("more that is new than a page holds leaves no gap", async () => {
    const opened = await openConsole(gateway, { path: "/requests?session=flood", keys: gateway });
    await speak("flood");
    await rowsOf(opened).first().locator("a").focus();
    for (let index = 0; index < 51; index++) await speak("flood");
    await opened.page.getByRole("button", { name: "50 or more new requests" }).click();
    await waitUntil(async () => (await rowsOf(opened).count()) === 50);
    await opened.page.getByRole("button", { name: "Show older ones" }).click();
    await waitUntil(async () => (await rowsOf(opened).count()) === 52);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("filters are chosen on the page, hold in the address, and are there again when it is opened", async () => {
    const opened = await openConsole(gateway, { path: "/requests", keys: gateway });
    const { page } = opened;
    await page.getByRole("textbox", { name: "Session" }).fill("two");
    await page.getByRole("textbox", { name: "Session" }).press("Enter");
    await waitUntil(async () => (await rowsOf(opened).count()) === 1);
    await page.getByRole("button", { name: /Model/ }).click();
    await page.getByRole("option", { name: "local/flite" }).click();
    await page.getByRole("button", { name: /Key$/ }).click();
    await page.getByRole("option").nth(1).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /Time/ }).click();
    await page.getByRole("option", { name: "The last hour" }).click();
    await waitUntil(() => page.url().endsWith("#/requests?period=hour&model=local%2Fflite&session=two"));
    await page.reload();
    await waitUntil(async () => (await rowsOf(opened).count()) === 1);
    await page.getByRole("button", { name: /Outcome/ }).click();
    await page.getByRole("option", { name: "failed" }).click();
    await page.getByText("No request is like that").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await waitUntil(async () => (await rowsOf(opened).count()) > 1);
    expect(new URL(page.url()).hash).toBe("#/requests");
  });

  test("a filter that the gateway refuses is told in its words", async () => {
    const { page } = await openConsole(gateway, { path: "/requests?key=nonsense", keys: gateway });
    await page.getByRole("alert").getByText("api_key_hash").waitFor();
  });

  test("a row opens to all that is known of it, and text that is HTML is text", async () => {
    const opened = await openConsole(gateway, {
      path: `/requests?session=${encodeURIComponent(hostile)}`,
      keys: gateway,
    });
    const { page } = opened;
    const link = rowsOf(opened).first().locator("a");
    await link.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText(hostile).waitFor();
    await dialog.getByText("List price").waitFor();
    await dialog.getByText("6 characters").waitFor();
    await dialog.getByText(/First byte after .* the whole took/).waitFor();
    await dialog.locator(".attempts li", { hasText: "endpoint" }).waitFor();
    expect(await page.title()).toBe("Requests · Media Gateway");
    expect(await violationsOf(opened)).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await waitUntil(() => link.evaluate((element) => element === element.ownerDocument.activeElement));
    expect(page.url()).toContain("session=%3Cimg");
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("a request that failed shows each attempt, with its endpoint and why", async () => {
    const body = { model: "openai/tts-1", voice: "alloy", input: "Hello." };
    await (await call("/audio/speech", gateway.inferenceKey, body)).text();
    const opened = await openConsole(gateway, { path: "/requests?outcome=failed", keys: gateway });
    const row = rowsOf(opened).first();
    await row.getByText("provider_failed").waitFor();
    await row.locator("a").click();
    const attempts = opened.page.getByRole("dialog").locator(".attempts li");
    await attempts.first().getByText("provider_failed").waitFor();
    const answer = await call("/generations?outcome=failed", gateway.managementKey);
    const [failed] = ((await answer.json()) as { data: { provider_responses: { endpoint_id: string }[] }[] })
      .data;
    const endpoints = failed?.provider_responses.map(({ endpoint_id }) => endpoint_id) ?? [];
    expect(endpoints.length).toBeGreaterThan(0);
    expect(await attempts.count()).toBe(endpoints.length);
    for (const [index, endpoint] of endpoints.entries()) {
      const text = await attempts.nth(index).textContent();
      expect(text).toContain(endpoint);
      expect(text).toContain("HTTP 500");
    }
    expect(await violationsOf(opened)).toEqual([]);
  });

  test("a request that the list does not show opens by its address; one that there is not is said to be none", async () => {
    const opened = await openConsole(gateway, { path: `/requests/${ids[0]}?session=two`, keys: gateway });
    await opened.page
      .getByRole("dialog")
      .getByText(ids[0] ?? "")
      .waitFor();
    const none = await openConsole(gateway, { path: "/requests/gen-tts-none", keys: gateway });
    await none.page.getByRole("dialog").getByRole("alert").waitFor();
  });

  test("the file has all pages of the filter, with exact amounts", async () => {
    const { page } = await openConsole(gateway, { path: "/requests?session=many", keys: gateway });
    await page.getByText("the newest 10,000 at most").waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const lines = (await readFile(await (await download).path(), "utf8")).trimEnd().split("\r\n");
    const titles = lines[0]?.split(",") ?? [];
    const column = (name: string) => lines.slice(1).map((line) => line.split(",")[titles.indexOf(name)]);
    const all = await listed("session_id=many&limit=100");
    expect(column("id")).toEqual(all.map(({ id }) => id));
    expect(column("usage_usd").map(Number)).toEqual(all.map(({ usage }) => usage));
    await page.getByText("Saved: all 56 rows.").waitFor();
  });

  test("a key that is revoked in mid-use leaves the list as it is, and another one goes on", async () => {
    const made = (await (
      await call("/keys", gateway.managementKey, { name: "Short-lived", kind: "management" })
    ).json()) as { key: string; data: { hash: string } };
    const opened = await openConsole(gateway, {
      path: "/requests?session=one",
      keys: { managementKey: made.key },
    });
    await waitUntil(async () => (await rowsOf(opened).count()) === 1);
    await (await call(`/keys/${made.data.hash}`, gateway.managementKey, undefined, "DELETE")).text();
    await opened.page.getByText("The key stopped working").waitFor();
    expect(await rowsOf(opened).count()).toBe(1);
    await opened.page.getByRole("textbox", { name: "Management key" }).fill(gateway.managementKey);
    await opened.page.getByRole("button", { name: "Use this key" }).click();
    await opened.page.getByText("The key stopped working").waitFor({ state: "detached" });
    await waitUntil(async () => (await rowsOf(opened).count()) === 1);
    expect(opened.complaints).toEqual([]);
  });

  test.for([
    ["light", {}],
    ["dark", {}],
    ["light", phone],
    ["dark", phone],
  ] as const)("nothing keeps people out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, {
      path: "/requests?period=between",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    await rowsOf(opened).first().waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
  });
});
