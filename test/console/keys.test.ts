import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { manage } from "./manage.ts";
import { needBrowser, openConsole, violationsOf } from "./open-console.ts";

let gateway: TestStandalone;

beforeAll(async () => {
  gateway = await startTestStandalone();
});

afterAll(() => gateway.close());

beforeEach(needBrowser);

const phone = { viewport: { width: 390, height: 844 } };
const longName = `<b>bold</b> ${"a-very-long-name-without-a-gap".repeat(6)}`;

interface Made {
  readonly key: string;
  readonly data: { readonly hash: string };
}

const makeKey = (body: object) => manage<Made>(gateway, "POST", "/keys", body);
const openKeys = (managementKey = gateway.managementKey) =>
  openConsole(gateway, { path: "/keys", keys: { managementKey } });

async function statusOf(key: string): Promise<number> {
  const response = await speak(gateway, key, { model: "local/flite", input: "Hello." });
  await bytesOf(response);
  return response.status;
}

describe("keys", () => {
  test("are created with scopes, limit and expiry; the key is shown once and works", async () => {
    const opened = await openKeys();
    const { page } = opened;
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Give it a name.").waitFor();
    await page.getByRole("textbox", { name: "Name" }).fill("Voices");
    await page.getByRole("checkbox", { name: "Images" }).uncheck();
    await page.getByLabel("Limit, US dollars").fill("0.1.2");
    await page.getByText("An amount such as 5").waitFor();
    await page.getByLabel("Limit, US dollars").fill("2.50");
    await page.getByRole("button", { name: /The limit starts anew/ }).click();
    await page.getByRole("option", { name: "Each day" }).click();
    await page.getByRole("button", { name: /Expires/ }).click();
    await page.getByRole("option", { name: "In a week" }).click();
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "The key Voices" }).waitFor();
    const secret = String(await page.locator(".fresh-key code").textContent());
    expect(await violationsOf(opened)).toEqual([]);
    expect(await statusOf(secret)).toBe(200);
    const { data } = await manage<{ data: Record<string, unknown>[] }>(gateway, "GET", "/keys");
    expect(data.find(({ name }) => name === "Voices")).toMatchObject({
      scopes: ["speech"],
      limit: 2.5,
      limit_reset: "daily",
      include_byok_in_limit: false,
    });
    await page.getByText("of $2.50 a day").waitFor();
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("heading", { name: "The key Voices" }).waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
    await page.reload();
    await page.getByText("Voices", { exact: true }).waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("are rotated, disabled, enabled and deleted, after a question", async () => {
    const made = await makeKey({ name: "Worker", limit: 1 });
    const opened = await openKeys();
    const { page } = opened;
    await page.getByRole("button", { name: "Rotate Worker" }).click();
    await page.getByRole("dialog", { name: "Rotate Worker?" }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("button", { name: "Make the new key" }).click();
    const shown = page.locator(".fresh-key code");
    await shown.waitFor();
    const secret = String(await shown.textContent());
    // The eye is led to where the key is, above the list.
    await waitUntil(async () => (await page.evaluate("document.activeElement.id")) === "fresh-key");
    expect(await statusOf(secret)).toBe(200);
    await expect.poll(() => statusOf(made.key), { timeout: 10_000 }).toBe(401);
    // The old one goes, so that each button is there once.
    await manage(gateway, "DELETE", `/keys/${made.data.hash}`);
    await page.reload();
    await page.getByRole("button", { name: "Disable Worker" }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Disable Worker" }).click();
    await page.getByRole("button", { name: "Disable the key" }).click();
    await page.getByText("disabled", { exact: true }).waitFor();
    await expect.poll(() => statusOf(secret), { timeout: 10_000 }).toBe(401);
    await page.getByRole("button", { name: "Enable Worker" }).click();
    await page.getByRole("button", { name: "Disable Worker" }).waitFor();
    await expect.poll(() => statusOf(secret), { timeout: 10_000 }).toBe(200);
    await page.getByRole("button", { name: "Delete Worker" }).click();
    await page.getByRole("button", { name: "Delete the key" }).click();
    await page.getByRole("button", { name: "Delete Worker" }).waitFor({ state: "detached" });
    await expect.poll(() => statusOf(secret), { timeout: 10_000 }).toBe(401);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("show what they have spent against their limit, and names that are HTML as text", async () => {
    const { key } = await makeKey({ name: longName, limit: 1 });
    expect(await statusOf(key)).toBe(200);
    let spent = 0;
    await waitUntil(async () => {
      const { data } = await manage<{ data: { name: string; usage: number }[] }>(gateway, "GET", "/keys");
      spent = data.find(({ name }) => name === longName)?.usage ?? 0;
      return spent > 0;
    });
    const { page } = await openKeys();
    await page.getByText(longName, { exact: true }).waitFor();
    await page.getByRole("meter", { name: `Limit of ${longName}` }).waitFor();
    const row = page.getByRole("row").filter({ hasText: longName });
    await row.getByText(`$${spent} of $1.00`).waitFor();
  });

  test("of this tab goes on when it is rotated, and says what is lost when it is deleted", async () => {
    const { key } = await makeKey({ name: "Tab", kind: "management" });
    const { page } = await openKeys(key);
    await page.getByText("this tab's").waitFor();
    await page.getByRole("button", { name: "Rotate Tab" }).click();
    await page.getByText("it goes on with the new one").waitFor();
    await page.getByRole("button", { name: "Make the new key" }).click();
    const card = page.getByRole("heading", { name: "The key Tab" });
    await card.waitFor();
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row").filter({ hasText: "this tab's" });
    await row.getByRole("button", { name: "Delete Tab" }).click();
    await page.getByText("it will need another one").waitFor();
  });

  test("that is revoked in mid-use leaves what was typed", async () => {
    const { key, data } = await makeKey({ name: "Short-lived", kind: "management" });
    const { page } = await openKeys(key);
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Not to be lost");
    await manage(gateway, "DELETE", `/keys/${data.hash}`);
    await page.getByText("The key stopped working").waitFor({ timeout: 40_000 });
    await page.getByRole("textbox", { name: "Management key" }).fill(gateway.managementKey);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("The key stopped working").waitFor({ state: "detached" });
    expect(await page.getByRole("textbox", { name: "Name" }).inputValue()).toBe("Not to be lost");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "The key Not to be lost" }).waitFor();
  });

  test("are asked for while they load, and an error is told with another try", async () => {
    const { page } = await openConsole(gateway, { path: "/", keys: gateway });
    let isFailing = true;
    await page.route("**/api/v1/keys?**", async (route) => {
      if (!isFailing) return route.continue();
      const error = { code: 503, message: "Away", metadata: { reason: "service_unavailable" } };
      await route.fulfill({ status: 503, json: { error } });
    });
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByRole("status", { name: "Loading" }).waitFor();
    await page.getByText("A part of the gateway can't be reached.").waitFor();
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("table").waitFor();
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("keep nobody out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, {
      path: "/keys",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    await opened.page.getByText(longName, { exact: true }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });
});
