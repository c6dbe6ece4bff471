import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
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
const secret = "sk-a-secret-of-a-provider-0123456789";

interface Stored {
  readonly provider: string;
  readonly label: string;
  readonly disabled: boolean;
}

const stored = async () => (await manage<{ data: Stored[] }>(gateway, "GET", "/byok")).data;
const openPage = () => openConsole(gateway, { path: "/provider-keys", keys: gateway });

describe("provider keys", () => {
  test("are added; the key leaves the page with what is sent", async () => {
    const opened = await openPage();
    const { page } = opened;
    await page.getByText("No provider keys of your own").waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("button", { name: "Add a provider key" }).click();
    await page.getByRole("button", { name: /Provider$/ }).click();
    await page.getByRole("option", { name: "OpenAI", exact: true }).click();
    await page.getByRole("button", { name: "Store the key" }).click();
    await page.getByText("Paste the key here.").waitFor();
    let isFailing = true;
    await page.route("**/api/v1/byok", async (route) => {
      if (route.request().method() !== "POST" || !isFailing) return route.continue();
      const error = { code: 409, message: "Too many", metadata: { reason: "count_limit_reached" } };
      await route.fulfill({ status: 409, json: { error } });
    });
    const field = page.getByRole("textbox", { name: "Key at the provider" });
    await field.fill(secret);
    await page.getByRole("textbox", { name: "Name" }).fill(longName);
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("button", { name: "Store the key" }).click();
    await page.getByText("paste it again for another try").waitFor();
    expect(await field.inputValue()).toBe("");
    isFailing = false;
    await field.fill(secret);
    await page.getByRole("button", { name: "Store the key" }).click();
    await page.getByText(longName, { exact: true }).waitFor();
    expect(await stored()).toMatchObject([{ provider: "openai", disabled: false }]);
    expect(await page.content()).not.toContain(secret);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("keep nobody out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, {
      path: "/provider-keys",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    await opened.page.getByRole("button", { name: "Disable the key of OpenAI" }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("are disabled, enabled, replaced and deleted by keyboard", async () => {
    const opened = await openPage();
    const { page } = opened;
    await page.getByRole("button", { name: "Disable the key of OpenAI" }).press("Enter");
    await page.getByText("disabled", { exact: true }).waitFor();
    expect((await stored())[0]?.disabled).toBe(true);
    await page.getByRole("button", { name: "Enable the key of OpenAI" }).press("Enter");
    await page.getByText("in use", { exact: true }).waitFor();
    const [before] = await stored();
    await page.getByRole("button", { name: "Replace the key of OpenAI" }).press("Enter");
    const field = page.getByRole("textbox", { name: "Key at the provider" });
    await field.fill("sk-quite-another-one-9876543210");
    expect(await violationsOf(opened)).toEqual([]);
    await field.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const [after] = await stored();
    expect(after?.label).not.toBe(before?.label);
    await page.getByText(String(after?.label), { exact: true }).waitFor();
    await page.getByRole("button", { name: "Delete the key of OpenAI" }).press("Enter");
    await page.getByRole("button", { name: "Delete the key", exact: true }).press("Enter");
    await page.getByText("No provider keys of your own").waitFor();
    expect(await stored()).toEqual([]);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("tell that they load, and an error with another try", async () => {
    const { page } = await openConsole(gateway, { path: "/", keys: gateway });
    let isFailing = true;
    await page.route("**/api/v1/byok", async (route) => {
      const error = { code: 503, message: "Away", metadata: { reason: "service_unavailable" } };
      await (isFailing ? route.fulfill({ status: 503, json: { error } }) : route.continue());
    });
    await page.getByRole("link", { name: "Provider keys" }).click();
    await page.getByRole("status", { name: "Loading" }).waitFor();
    await page.getByText("A part of the gateway can't be reached.").waitFor();
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No provider keys of your own").waitFor();
  });

  test("keep what was typed when the tab's key is revoked in mid-use", async () => {
    const body = { name: "Short-lived", kind: "management" };
    const made = await manage<{ key: string; data: { hash: string } }>(gateway, "POST", "/keys", body);
    const { page } = await openConsole(gateway, {
      path: "/provider-keys",
      keys: { managementKey: made.key },
    });
    await page.getByRole("button", { name: "Add a provider key" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Not to be lost");
    await manage(gateway, "DELETE", `/keys/${made.data.hash}`);
    await page.getByText("The key stopped working").waitFor({ timeout: 40_000 });
    expect(await page.getByLabel("Name").inputValue()).toBe("Not to be lost");
  });
});
