import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import type { Receiver } from "../upstreams/receivers/receiver.ts";
import { startWebhookReceiver } from "../upstreams/receivers/webhook-receiver.ts";
import { manage } from "./manage.ts";
import { needBrowser, openConsole, violationsOf } from "./open-console.ts";

const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const longName = `<b>bold</b> ${"a-very-long-name-without-a-gap".repeat(6)}`;
const phone = { viewport: { width: 390, height: 844 } };
let gateway: TestStandalone;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startWebhookReceiver({ secret });
  gateway = await startTestStandalone({ DESTINATION_ALLOWED_CIDRS: "127.0.0.0/8" });
});

afterAll(async () => {
  await gateway.close();
  await receiver.close();
});

beforeEach(needBrowser);

interface Listed {
  readonly name: string;
  readonly enabled: boolean;
  readonly config: { readonly url: string };
}

const listed = async () =>
  (await manage<{ data: Listed[] }>(gateway, "GET", "/observability/destinations")).data;
const openPage = (keys: { readonly managementKey: string } = gateway) =>
  openConsole(gateway, { path: "/destinations", keys: { managementKey: keys.managementKey } });

async function generate(): Promise<void> {
  await bytesOf(await speak(gateway, gateway.inferenceKey, { model: "local/flite", input: "Hello." }));
}

describe("destinations", () => {
  test("are created by the form of their type; secrets leave it with what is sent", async () => {
    const opened = await openPage();
    const { page } = opened;
    await page.getByText("No destinations yet").waitFor();
    await page.getByRole("button", { name: "Create a destination" }).click();
    await page.getByRole("button", { name: /Type$/ }).click();
    await page.getByRole("option", { name: "S3 bucket" }).click();
    await page.getByRole("textbox", { name: "Bucket" }).waitFor();
    await page.getByRole("button", { name: /Type$/ }).click();
    await page.getByRole("option", { name: "Webhook" }).click();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("This is needed.").waitFor();
    await page.getByRole("textbox", { name: "Name" }).fill("Receiver");
    await page.getByRole("textbox", { name: "Address" }).fill("http://10.1.2.3/hook");
    const signing = page.getByRole("textbox", { name: "Signing secret" });
    await signing.fill(secret);
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("type them again for another try").waitFor();
    expect(await signing.inputValue()).toBe("");
    await page.getByRole("textbox", { name: "Address" }).fill(`${receiver.baseUrl}/hook`);
    await signing.fill(secret);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("link", { name: "Receiver" }).waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await listed()).toMatchObject([{ name: "Receiver", enabled: true }]);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("are tested, and show what was delivered and why something was not", async () => {
    const opened = await openPage();
    const { page } = opened;
    await page.getByRole("button", { name: "Test Receiver" }).click();
    await page.getByText("The receiver took the test.").waitFor();
    receiver.next({ kind: "answer", status: 503, body: "" });
    await page.getByRole("button", { name: "Test Receiver" }).click();
    await page.getByText("The test did not arrive.").waitFor();
    await page.getByText("It answered 503: ").waitFor();
    receiver.next({ kind: "answer", status: 503, body: "" });
    await generate();
    await page.getByRole("link", { name: "Receiver" }).click();
    const rows = page.getByRole("table", { name: "Deliveries, newest first" }).getByRole("row");
    await rows.filter({ hasText: "delivered" }).first().waitFor({ timeout: 30_000 });
    await rows.filter({ hasText: "retrying" }).filter({ hasText: "503" }).first().waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("link", { name: "All destinations" }).click();
    await page.getByRole("button", { name: "Test Receiver" }).waitFor();
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("are paused, resumed and deleted by keyboard", async () => {
    const opened = await openPage();
    const { page } = opened;
    await page.getByRole("button", { name: "Pause Receiver" }).press("Enter");
    await page.getByText("paused", { exact: true }).waitFor();
    expect(await listed()).toMatchObject([{ enabled: false }]);
    await page.getByRole("button", { name: "Resume Receiver" }).press("Enter");
    await page.getByText("delivering", { exact: true }).waitFor();
    expect(await listed()).toMatchObject([{ enabled: true }]);
    await page.getByRole("button", { name: "Delete Receiver" }).press("Enter");
    await page.getByRole("dialog", { name: "Delete Receiver?" }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Delete Receiver" }).press("Enter");
    await page.getByRole("button", { name: "Delete the destination" }).press("Enter");
    await page.getByText("No destinations yet").waitFor();
    expect(await listed()).toEqual([]);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("tell that they load, and an error with another try", async () => {
    const { page } = await openConsole(gateway, { path: "/", keys: gateway });
    let isFailing = true;
    await page.route("**/api/v1/observability/destinations?**", async (route) => {
      const error = { code: 503, message: "Away", metadata: { reason: "service_unavailable" } };
      await route.fulfill(
        isFailing ? { status: 503, json: { error } } : { status: 200, json: { data: [], total_count: 0 } },
      );
    });
    await page.getByRole("link", { name: "Destinations" }).click();
    await page.getByRole("status", { name: "Loading" }).waitFor();
    await page.getByText("A part of the gateway can't be reached.").waitFor();
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No destinations yet").waitFor();
  });

  test("keep what was typed when the tab's key is revoked in mid-use", async () => {
    const body = { name: "Short-lived", kind: "management" };
    const made = await manage<{ key: string; data: { hash: string } }>(gateway, "POST", "/keys", body);
    const { page } = await openPage({ managementKey: made.key });
    await page.getByRole("button", { name: "Create a destination" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Not to be lost");
    await manage(gateway, "DELETE", `/keys/${made.data.hash}`);
    await page.getByText("The key stopped working").waitFor({ timeout: 40_000 });
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Not to be lost");
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("keep nobody out: %s %o", async ([colorScheme, size]) => {
    if (!(await listed()).some(({ name }) => name === longName)) {
      const config = { url: `${receiver.baseUrl}/hook/${"x".repeat(200)}` };
      await manage(gateway, "POST", "/observability/destinations", {
        type: "webhook",
        name: longName,
        config,
      });
    }
    const opened = await openConsole(gateway, {
      path: "/destinations",
      keys: gateway,
      browser: { colorScheme, ...size },
    });
    const { page } = opened;
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    await page.getByRole("link", { name: longName }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
    await page.getByRole("link", { name: longName }).click();
    await page.getByRole("heading", { name: longName }).waitFor();
    await page.getByRole("heading", { name: "Deliveries" }).waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });
});
