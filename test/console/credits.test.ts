import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { needBrowser, openConsole, violationsOf } from "./open-console.ts";

let gateway: TestStandalone;

beforeAll(async () => {
  gateway = await startTestStandalone();
});

afterAll(() => gateway.close());

beforeEach(needBrowser);

const phone = { viewport: { width: 390, height: 844 } };

interface Credits {
  readonly total_credits: number;
  readonly total_usage: number;
}

interface Entry {
  readonly type: string;
  readonly amount: number;
}

async function ask<T>(path: string): Promise<T> {
  const headers = { authorization: `Bearer ${gateway.managementKey}` };
  return (await (await fetch(`${gateway.baseUrl}/api/v1${path}`, { headers })).json()) as T;
}

async function admin(...line: string[]): Promise<void> {
  const env = { ...process.env, DATA_DIR: gateway.dataDir, RPC_PORT: String(gateway.rpcPort) };
  await promisify(execFile)(process.execPath, ["commands/admin.ts", ...line], { env });
}

/** Requests whose charges stand in the ledger; no two cost the same. */
async function spend(count: number): Promise<void> {
  const { data } = await ask<{ data: Entry[] }>("/credits/ledger");
  for (let length = 1; length <= count; length += 1) {
    const input = "a".repeat(length);
    await bytesOf(await speak(gateway, gateway.inferenceKey, { model: "local/flite", input }));
  }
  const before = data.filter(({ type }) => type === "charge").length;
  const charges = async () =>
    (await ask<{ data: Entry[] }>("/credits/ledger?limit=100")).data.filter(({ type }) => type === "charge");
  await expect.poll(async () => (await charges()).length, { timeout: 20_000 }).toBe(before + count);
}

describe("credits", () => {
  test("of an account that has done nothing say what would be there, while it loads and when it fails", async () => {
    const { page } = await openConsole(gateway, { path: "/", keys: gateway });
    let answer: "failing" | "empty" = "failing";
    await page.route("**/api/v1/credits/ledger**", async (route) => {
      const error = { code: 503, message: "Away", metadata: { reason: "service_unavailable" } };
      await route.fulfill(
        answer === "failing"
          ? { status: 503, json: { error } }
          : { status: 200, json: { data: [], next_cursor: null } },
      );
    });
    await page.getByRole("link", { name: "Credits", exact: true }).click();
    await page.getByRole("status", { name: "Loading" }).first().waitFor();
    await page.getByText("A part of the gateway can't be reached.").waitFor();
    answer = "empty";
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Nothing has moved yet").waitFor();
  });

  test("are told exactly, with every grant, charge and correction, page by page", async () => {
    await spend(26);
    await admin("credit", "grant", "0.123456789", "--id", "<i>invoice</i>");
    await admin("credit", "correct", "-0.1", "--reason", "Twice", "--id", "taken-back");
    const opened = await openConsole(gateway, { path: "/credits", keys: gateway });
    const { page } = opened;
    const { data } = await ask<{ data: Credits }>("/credits");

    const nano = (usd: number) => BigInt(Math.round(usd * 1e9));
    const balance = nano(data.total_credits) - nano(data.total_usage);
    const shown = String(await page.locator(".figures .figure").first().textContent());
    expect(nanoOf(shown)).toBe(balance);
    const rows = page.getByRole("table").getByRole("row");
    await rows.filter({ hasText: "correction" }).getByText("-$0.10", { exact: true }).waitFor();
    await rows.filter({ hasText: "<i>invoice</i>" }).getByText("$0.123456789", { exact: true }).waitFor();
    expect(await rows.count()).toBe(1 + 25);
    await page.getByRole("button", { name: "Show older entries" }).click();
    await page.getByRole("button", { name: "Show older entries" }).waitFor({ state: "detached" });
    const ledger = await ask<{ data: Entry[] }>("/credits/ledger?limit=100");
    expect(await rows.count()).toBe(1 + ledger.data.length);
    const amounts = await page.getByRole("table").locator("td.end").allTextContents();
    const total = amounts.reduce((sum, text) => sum + nanoOf(text), 0n);
    expect(total).toBe(balance);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("follow what happens", async () => {
    const { page } = await openConsole(gateway, { path: "/credits", keys: gateway });
    await page.getByRole("table").waitFor();
    await admin("credit", "grant", "1000", "--id", "late");
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("row").filter({ hasText: "late" }).getByText("$1,000.00").waitFor();
    await page.locator(".figures").getByText("$1,0").first().waitFor();
  });

  test("ask for another key when theirs is revoked in mid-use", async () => {
    const headers = { authorization: `Bearer ${gateway.managementKey}`, "content-type": "application/json" };
    const url = `${gateway.baseUrl}/api/v1/keys`;
    const body = JSON.stringify({ name: "Short-lived", kind: "management" });
    const made = (await (await fetch(url, { method: "POST", headers, body })).json()) as {
      key: string;
      data: { hash: string };
    };
    const { page } = await openConsole(gateway, { path: "/credits", keys: { managementKey: made.key } });
    await page.getByRole("table").waitFor();
    await (await fetch(`${url}/${made.data.hash}`, { method: "DELETE", headers })).text();
    await page.getByText("The key stopped working").waitFor({ timeout: 30_000 });
    await page.getByRole("table").waitFor();
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("keep nobody out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, {
      path: "/credits",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    await opened.page.getByRole("table").waitFor();
    await opened.page.locator(".figures").waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });
});

function decimals(shown: string): number {
  return shown.split(".")[1]?.length ?? 0;
}

function nanoOf(shown: string): bigint {
  return BigInt(shown.replaceAll(/[$,.]/g, "")) * 10n ** BigInt(9 - decimals(shown));
}
