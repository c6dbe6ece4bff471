import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { needBrowser, openConsole, violationsOf } from "./open-console.ts";

let gateway: TestStandalone;

beforeAll(async () => {
  gateway = await startTestStandalone();
});

afterAll(() => gateway.close());

beforeEach(needBrowser);

const phone = { viewport: { width: 390, height: 844 } };

test("models are found by name and medium, which stand in the address", async () => {
  const opened = await openConsole(gateway, { path: "/models", keys: gateway });
  const { page } = opened;
  await page.getByText("3 of 3 models").waitFor();
  await page.getByText("$1.00 per million characters").waitFor();
  await page.getByLabel("Search").fill("PAINT");
  await page.getByText("1 of 3 models").waitFor();
  expect(page.url()).toMatch(/#\/models\?q=PAINT$/);
  await page.getByLabel("Search").fill("<b>nothing</b>");
  await page.getByText("No model is like that").waitFor();
  await page.goto(`${gateway.baseUrl}/#/models?medium=image`);
  await page.getByText("2 of 3 models").waitFor();
  expect(opened).toMatchObject({ foreign: [], complaints: [] });
});

test("a voice is heard, and what that costs is said before", async () => {
  const opened = await openConsole(gateway, { path: "/models", keys: gateway });
  const { page } = opened;
  await page.getByRole("link", { name: "Flite" }).press("Enter");
  await page.getByText("costs at most $0.000027, 27 characters").waitFor();
  await page.getByRole("button", { name: "Hear Male (Scottish)" }).press("Enter");
  await page.getByLabel("Voice awb").waitFor();
  await waitUntil(async () => await page.evaluate('document.querySelector("audio").currentTime > 0.1'));
  expect(opened).toMatchObject({ foreign: [], complaints: [] });
});

test("an image model says what can be set, who serves it and at what price", async () => {
  const { page } = await openConsole(gateway, { path: "/models/local/painter", keys: gateway });
  await page.getByText("$0.001 per image").waitFor();
  await page.getByText("aspect_ratio").waitFor();
  await page.getByText("21:9", { exact: true }).waitFor();
  await page.getByText(/Not used lately/).waitFor();
});

test("an unknown model and a failing gateway are told in words", async () => {
  const { page } = await openConsole(gateway, { path: "/models/no/such<i>", keys: gateway });
  await page.getByText("There is no such model here").waitFor();
  await page.route("**/api/v1/models", (route) =>
    route.fulfill({ status: 400, json: { error: { code: 400, message: "Broken for the test" } } }),
  );
  await page.goto(`${gateway.baseUrl}/#/models`);
  await page.reload();
  await page.getByText("Broken for the test.").waitFor();
  await page.unroute("**/api/v1/models");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("3 of 3 models").waitFor();
});

test("without a key it asks for one; a management key lists, and voices ask for the other kind", async () => {
  const bare = await openConsole(gateway, { path: "/models" });
  await bare.page.getByText("This needs an inference key").waitFor();
  const { page } = await openConsole(gateway, {
    path: "/models/local/flite",
    keys: { managementKey: gateway.managementKey },
  });
  await page.getByText("$1.00 per million characters").waitFor();
  await page.getByText("This needs an inference key").waitFor();
});

test("a key that is revoked in mid-use leaves the page, and its text, where they were", async () => {
  const key = await makeKey();
  const { page } = await openConsole(gateway, {
    path: "/models/local/flite",
    keys: { inferenceKey: key.key },
  });
  await page.getByLabel("Text to hear").fill("Still here.");
  await fetch(`${gateway.baseUrl}/api/v1/keys/${key.hash}`, { method: "DELETE", headers: authorized() });
  await waitUntil(async () => {
    const hear = page.getByRole("button", { name: "Hear Female (US)" });
    if (await hear.isEnabled()) await hear.click({ timeout: 500 }).catch(() => undefined);
    return (await page.getByText("The key stopped working").count()) > 0;
  });
  expect(await page.getByLabel("Text to hear").inputValue()).toBe("Still here.");
});

function authorized() {
  return { authorization: `Bearer ${gateway.managementKey}`, "content-type": "application/json" };
}

async function makeKey(): Promise<{ key: string; hash: string }> {
  const response = await fetch(`${gateway.baseUrl}/api/v1/keys`, {
    method: "POST",
    headers: authorized(),
    body: JSON.stringify({ name: "to be revoked" }),
  });
  const { key, data } = (await response.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

test.for([
  ["light", {}],
  ["dark", phone],
] as const)("has nothing that keeps people out: %s %o", async ([colorScheme, size]) => {
  for (const path of ["/models", "/models/local/flite", "/models/local/painter"]) {
    const opened = await openConsole(gateway, { path, keys: gateway, browser: { colorScheme, ...size } });
    await opened.page
      .getByText(/\$0\.001 per image|costs at most/)
      .first()
      .waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  }
});
