import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  openAiEnv,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import { needBrowser, openConsole, violationsOf } from "./open-console.ts";

let gateway: TestStandalone;

beforeAll(async () => {
  // Nobody listens there, so that OpenAI's endpoints fail.
  gateway = await startTestStandalone(openAiEnv({ baseUrl: "http://127.0.0.1:9" }));
  for (const model of ["local/flite", "openai/tts-1"]) {
    const answer = await speak(gateway, gateway.inferenceKey, { model, input: "Hello.", voice: "alloy" });
    await answer.arrayBuffer();
    expect(answer.ok).toBe(model === "local/flite");
  }
});

afterAll(() => gateway.close());

beforeEach(needBrowser);

const phone = { viewport: { width: 390, height: 844 } };

test("what fails stands first, with its share of errors; what works has its time to the first output", async () => {
  const opened = await openConsole(gateway, { path: "/health", keys: gateway });
  const providers = opened.page.getByRole("region", { name: "Health of providers" });
  const endpoints = opened.page.getByRole("region", { name: "Health of endpoints" });
  const failing = endpoints.getByRole("row", { name: /openai\/tts-1 OpenAI Failing 100% of \d.*network/ });
  await failing.waitFor();
  expect(await providers.getByRole("row").nth(1).textContent()).toMatch(/^OpenAI/);
  await endpoints.getByRole("row", { name: /local\/flite Local Healthy 0% of 1 [\d.]+ m?s None/ }).waitFor();
  await endpoints.getByRole("row", { name: /local\/painter Local Not used lately – –/ }).waitFor();
  expect(opened).toMatchObject({ foreign: [], complaints: [] });
});

test("follows what happens without being loaded anew", async () => {
  const { page } = await openConsole(gateway, { path: "/health", keys: gateway });
  await page.getByRole("row", { name: /local\/postcard Local Not used lately/ }).waitFor();
  const answer = await fetch(`${gateway.baseUrl}/api/v1/images`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.inferenceKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "local/postcard", prompt: "A lighthouse" }),
  });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  await page.getByRole("row", { name: /local\/postcard Local Healthy/ }).waitFor();
});

test("open breakers, an empty gateway and errors are told in words", async () => {
  const { page } = await openConsole(gateway, { path: "/health", keys: gateway });
  await page.route("**/api/v1/providers", async (route) => {
    const response = await route.fetch();
    const { data } = (await response.json()) as { data: { slug: string; health: object }[] };
    const local = data.filter(({ slug }) => slug === "local");
    const name = "<b>Local</b>";
    const health = { ...local[0]?.health, breaker: "partly_open" };
    await route.fulfill({ response, json: { data: local.map((each) => ({ ...each, name, health })) } });
  });
  await page.route("**/api/v1/models", (route) =>
    route.fulfill({ status: 400, json: { error: { code: 400, message: "Broken for the test" } } }),
  );
  await page.reload();
  await page.getByText("<b>Local</b>").waitFor();
  await page.getByText("Breaker partly open").waitFor();
  await page.getByText("Broken for the test.").waitFor();
  await page.unrouteAll();
  await page.route("**/api/v1/providers", (route) => route.fulfill({ json: { data: [] } }));
  await page.reload();
  await page.getByText("No provider is on yet").waitFor();
});

test("a key that is revoked in mid-use leaves what was seen", async () => {
  const headers = { authorization: `Bearer ${gateway.managementKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "to be revoked" });
  const made = await fetch(`${gateway.baseUrl}/api/v1/keys`, { method: "POST", headers, body });
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  const { page } = await openConsole(gateway, { path: "/health", keys: { inferenceKey: key } });
  await page.getByText("local/flite").waitFor();
  await fetch(`${gateway.baseUrl}/api/v1/keys/${data.hash}`, { method: "DELETE", headers });
  await page.getByText("The key stopped working").waitFor();
  expect(await page.getByText("local/flite").count()).toBe(1);
});

test.for([
  ["light", {}],
  ["dark", phone],
] as const)("has nothing that keeps people out: %s %o", async ([colorScheme, size]) => {
  const opened = await openConsole(gateway, {
    path: "/health",
    keys: gateway,
    browser: { colorScheme, ...size },
  });
  await opened.page.getByText("local/flite").waitFor();
  expect(await violationsOf(opened)).toEqual([]);
  const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
  expect(opened).toMatchObject({ foreign: [], complaints: [] });
});
