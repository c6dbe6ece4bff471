import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
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

describe("the first page", () => {
  test("speaks and draws at once, and says what it cost", async () => {
    const opened = await openConsole(gateway, { keys: gateway });
    const { page } = opened;
    await page.getByRole("button", { name: "Speak" }).click();
    const audio = page.getByLabel("What was spoken");
    await audio.waitFor();
    // The browser's own decoder has heard sound of some length, and it plays.
    await waitUntil(async () => await page.evaluate('document.querySelector("audio").currentTime > 0.1'));
    await page.getByRole("button", { name: "Draw" }).click();
    const picture = page.getByRole("img", { name: /lighthouse/ });
    await picture.waitFor();
    const width = 'document.querySelector(".picture img").naturalWidth';
    await waitUntil(async () => Number(await page.evaluate(width)) > 100);
    await page.getByText(/It cost \$0\.0/).waitFor();
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });

  test("says how things stand, and how the providers that are off are switched on", async () => {
    const { page } = await openConsole(gateway, { keys: gateway });
    await page.getByText("1 inference · 1 management").waitFor();
    await page.getByText(/free · /).waitFor();
    await page.getByText("OPENAI_API_KEY=... npm start").waitFor();
  });

  test("comes in at most 200 KB", async () => {
    const { page } = await openConsole(gateway);
    const loaded = new Set<string>();
    page.on("request", (request) => loaded.add(request.url().replace(/#.*/, "")));
    await page.reload({ waitUntil: "networkidle" });
    let bytes = 0;
    for (const url of loaded) {
      const response = await fetch(url, { headers: { "accept-encoding": "gzip" } });
      bytes += Number(response.headers.get("content-length"));
      await response.arrayBuffer();
    }
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThanOrEqual(200_000);
  });

  test("copies a call that works, with the key that the page only shows masked", async () => {
    const { page } = await openConsole(gateway, {
      keys: gateway,
      browser: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    await page.getByRole("button", { name: "Copy the call in curl" }).click();
    const copied = String(await page.evaluate("navigator.clipboard.readText()"));
    expect(copied).toContain(`Authorization: Bearer ${gateway.inferenceKey}`);
    expect(copied).toContain(`${gateway.baseUrl}/api/v1/audio/speech`);
    expect(await page.content()).not.toContain(gateway.inferenceKey);
  });

  test("has its navigation behind a button at phone width, which Escape closes", async () => {
    const { page } = await openConsole(gateway, { browser: phone });
    const navigation = page.getByRole("navigation", { name: "Pages" });
    expect(await navigation.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Open the navigation" }).click();
    await navigation.waitFor();
    await page.keyboard.press("Escape");
    await navigation.waitFor({ state: "hidden" });
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("has nothing that keeps people out: %s %o", async ([colorScheme, size]) => {
    const opened = await openConsole(gateway, { keys: gateway, browser: { colorScheme, ...size } });
    await opened.page.getByText("OPENAI_API_KEY=... npm start").waitFor();
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await opened.page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
  });
});
