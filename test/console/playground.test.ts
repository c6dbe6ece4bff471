import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openAiEnv, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import { type ConsolePage, needBrowser, openConsole, violationsOf } from "./open-console.ts";

let upstream: OpenAiUpstream;
let gateway: TestStandalone;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  gateway = await startTestStandalone(openAiEnv(upstream));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(needBrowser);

const openAi = { path: "/playground?model=openai/tts-1" };
const clean = { foreign: [], complaints: [] };
const phone = { viewport: { width: 390, height: 844 } };

/** The page, and the id of each generation that it caused. */
async function openPlayground(options: Parameters<typeof openConsole>[1] = {}) {
  const opened = await openConsole(gateway, { path: "/playground", keys: gateway, ...options });
  const generations: string[] = [];
  opened.page.on("response", (response) => {
    const id = response.headers()["x-generation-id"];
    if (id !== undefined) generations.push(id);
  });
  return { ...opened, generations };
}

/** The text of what is found, however it looks. */
function textOf(locator: Locator): Promise<string> {
  return locator.textContent().then(String);
}

function evaluated(opened: ConsolePage, expression: string): Promise<number> {
  return opened.page.evaluate(expression).then(Number);
}

const played = 'document.querySelector("audio").currentTime';

/** What stands behind a figure's name. */
function figure({ page }: ConsolePage, name: string) {
  return page.locator("dl.figures > div").filter({ hasText: name, visible: true }).locator("dd");
}

/** What the interface says that a generation cost, as people read it. */
async function costOf(id: string | undefined): Promise<string> {
  const { data } = await waitUntil(async () => {
    const headers = { authorization: `Bearer ${gateway.inferenceKey}` };
    const response = await fetch(`${gateway.baseUrl}/api/v1/generation?id=${id}`, { headers });
    const answer = (await response.json()) as { data?: { total_cost: number } };
    return answer.data === undefined ? undefined : { data: answer.data };
  });
  return `$${data.total_cost.toFixed(9).replace(/0+$/, "")}`;
}

describe("speech", () => {
  test("is heard, and its cost is at most what was said, and what the record says", async () => {
    const opened = await openPlayground();
    const { page, generations } = opened;
    await page
      .getByRole("textbox", { name: "Text" })
      .fill("This is heard aloud, and paid to the last digit.");
    await page.getByText("Costs up to $0.000048").waitFor();
    await page.getByRole("button", { name: "Speak" }).click();
    await waitUntil(async () => (await evaluated(opened, played)) > 0.2);
    await page.getByText("All of it has arrived.").waitFor();
    await waitUntil(async () => /^\d/.test(await textOf(figure(opened, "Length"))));
    expect(await evaluated(opened, 'document.querySelector("audio").duration')).toBeGreaterThan(1);
    const cost = await costOf(generations[0]);
    await waitUntil(async () => (await textOf(figure(opened, "Cost"))) === cost);
    expect(cost).toBe("$0.000048");
    expect(opened).toMatchObject(clean);
  });

  test("is heard while the rest has not arrived", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    upstream.next({ kind: "audio", beforeChunk: (index) => (index < 12 ? undefined : gate) });
    const opened = await openPlayground(openAi);
    const { page } = opened;
    await page.getByRole("button", { name: "Speak" }).click();
    await waitUntil(async () => (await evaluated(opened, played)) > 0.2);
    expect(await textOf(figure(opened, "First byte"))).toMatch(/^\d/);
    await page.getByText("Speaking …").waitFor();
    expect(await page.getByRole("link", { name: /Download/ }).count()).toBe(0);
    release();
    await page.getByText("All of it has arrived.").waitFor();
    // 160 kbit/s.
    await waitUntil(
      async () =>
        Math.abs(
          (await evaluated(opened, 'document.querySelector("audio").duration')) - (20 * 4096) / 20_000,
        ) < 0.1,
    );
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download speech.mp3" }).click();
    expect((await download).suggestedFilename()).toBe("speech.mp3");
    expect(opened).toMatchObject(clean);
  });

  test("comes as samples, too, in another voice and at another speed", async () => {
    const opened = await openPlayground();
    const { page } = opened;
    await choose(opened, "Voice", /^awb/);
    await choose(opened, "Speed", "2 ×");
    await choose(opened, "Format", /^pcm/);
    const sent = page.waitForRequest(/audio\/speech/);
    await page.getByRole("button", { name: "Speak" }).click();
    expect((await sent).postDataJSON()).toMatchObject({ voice: "awb", speed: 2, response_format: "pcm" });
    await page.getByRole("link", { name: "Download speech.wav" }).waitFor();
    await waitUntil(async () => (await evaluated(opened, 'document.querySelector("audio").duration')) > 1);
    await page.evaluate('document.querySelector("audio").play()');
    await waitUntil(async () => (await evaluated(opened, played)) > 0.1);
    expect(opened).toMatchObject(clean);
  });

  test("is cancelled while it runs", async () => {
    upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    const opened = await openPlayground(openAi);
    await opened.page.getByRole("button", { name: "Speak" }).click();
    await waitUntil(async () => /^\d/.test(await textOf(figure(opened, "First byte"))));
    await opened.page.getByRole("button", { name: "Cancel" }).click();
    await opened.page.getByText("Cancelled.", { exact: true }).waitFor();
    await opened.page.getByRole("button", { name: "Cancel" }).waitFor({ state: "detached" });
    expect(opened).toMatchObject(clean);
  });

  test("that breaks off or is refused says so", async () => {
    upstream.next({ kind: "audio", cutAfterBytes: 8192 }, { kind: "error", status: 400 });
    const { page } = await openPlayground(openAi);
    await page.getByRole("button", { name: "Speak" }).click();
    await page.getByText("The answer broke off before its end.").waitFor();
    await page.getByRole("button", { name: "Speak" }).click();
    await page.getByRole("alert").getByText("OpenAI").waitFor();
    await page.getByRole("textbox", { name: "Text" }).fill("a".repeat(4097));
    await page.getByText("4,097 characters: the model takes 4,096.").waitFor();
    expect(await page.getByRole("button", { name: "Speak" }).isDisabled()).toBe(true);
  });

  test("says of a price by the token that only the provider counts it", async () => {
    const { page } = await openPlayground({ path: "/playground?model=openai/gpt-4o-mini-tts" });
    const words =
      "Billed by what the provider counts: $0.0000006 per input text token, $0.000012 per output audio token";
    await page.getByText(words).waitFor();
    expect(await page.getByText("Costs up to").filter({ visible: true }).count()).toBe(0);
  });
});

const images = { path: "/playground/images" };
const seen = (which: string) => `document.querySelector('${which}')?.naturalWidth`;

describe("images", () => {
  test("are seen as they are drawn, with what they cost", async () => {
    const opened = await openPlayground(images);
    const { page, generations } = opened;
    await page
      .getByRole("textbox", { name: "Prompt" })
      .fill("<img src=x onerror=alert(1)> a gryphon by a lake");
    await choose(opened, "How many", "2");
    await page.getByText("Costs up to $0.002").waitFor();
    await page.getByRole("button", { name: "Draw" }).click();
    await waitUntil(async () => (await evaluated(opened, seen(".gallery .is-preview"))) > 100);
    await page.getByText("Done. 2 of 2 images.").waitFor();
    const drawn = page.getByRole("img", { name: "<img src=x onerror=alert(1)> a gryphon by a lake" });
    expect(await drawn.count()).toBe(2);
    await waitUntil(async () => (await evaluated(opened, seen(".gallery li:nth-child(2) img"))) > 100);
    await page.getByText(/Not understood, and left out: .*“gryphon”/).waitFor();
    const cost = await costOf(generations[0]);
    await waitUntil(async () => (await textOf(figure(opened, "Cost"))) === cost);
    expect(cost).toBe("$0.002");
    expect(opened).toMatchObject(clean);
  });

  test("that are SVG are shown by img alone", async () => {
    const opened = await openPlayground(images);
    await choose(opened, "Format", "svg");
    await opened.page.getByRole("button", { name: "Draw" }).click();
    await opened.page.getByText("Done.").waitFor();
    await waitUntil(async () => (await evaluated(opened, seen(".gallery img"))) > 100);
    expect(await opened.page.getByRole("link", { name: "Download image-1.svg" }).count()).toBe(1);
    expect(
      await evaluated(opened, 'document.querySelectorAll(".gallery svg, object, embed, iframe").length'),
    ).toBe(0);
    expect(opened).toMatchObject(clean);
  });

  test("start from what is chosen, dropped and removed", async () => {
    const opened = await openPlayground(images);
    const { page } = opened;
    const buffer = await pngOf(opened);
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.getByRole("button", { name: "Choose files" }).press("Enter"),
    ]);
    await chooser.setFiles([
      { name: "one.png", mimeType: "image/png", buffer },
      { name: "two.png", mimeType: "image/png", buffer },
      { name: "notes.txt", mimeType: "text/plain", buffer },
    ]);
    await page.getByText("Only PNG, JPEG and WebP of at most 20 MiB are taken.").waitFor();
    await page.getByRole("button", { name: "Remove one.png" }).click();
    await drop(opened, "dropped.png", buffer);
    await page.getByText("dropped.png", { exact: true }).waitFor();
    const sent = page.waitForRequest(/\/images$/);
    await page.getByRole("button", { name: "Draw" }).click();
    const { input_references: references } = (await sent).postDataJSON();
    const url = `data:image/png;base64,${buffer.toString("base64")}`;
    expect(references).toEqual([1, 2].map(() => ({ type: "image_url", image_url: { url } })));
    await page.getByText("Done.").waitFor();
    await waitUntil(async () => (await evaluated(opened, seen(".gallery img"))) > 100);
    expect(opened).toMatchObject(clean);
  });

  test("say which wish had no effect, and are cancelled while they are drawn", async () => {
    const opened = await openPlayground({ path: "/playground/images?model=local/postcard" });
    const { page } = opened;
    await choose(opened, "Quality", "High");
    await page.getByRole("button", { name: "Draw" }).click();
    await page.getByText("The model has no control over the quality").waitFor();
    upstream.next({ kind: "image", beforeHeaders: () => new Promise(() => {}) });
    await choose(opened, "Model", /openai\/gpt-image-1\.5/);
    await page.getByRole("button", { name: "Draw" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Cancelled.", { exact: true }).waitFor();
    expect(opened).toMatchObject(clean);
  });
});

describe("the page", () => {
  test("gives each call as code that works, with the environment's key unless another is asked for", async () => {
    const browser = { permissions: ["clipboard-read", "clipboard-write"] };
    const opened = await openPlayground({ ...images, browser });
    const { page } = opened;
    const copied = async (language: string) => {
      await page.getByRole("button", { name: `Copy the call in ${language}` }).click();
      return String(await page.evaluate("navigator.clipboard.readText()"));
    };
    const folder = await mkdtemp(join(process.cwd(), "node_modules", ".playground-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const name = "it's a $HOME `id`.png";
    const buffer = await pngOf(opened);
    await writeFile(join(folder, name), buffer);
    await page.locator("input[type=file]").setInputFiles([{ name, mimeType: "image/png", buffer }]);
    await page.getByRole("textbox", { name: "Prompt" }).fill('A lake, "it\'s" $HOME `id` \\n\nEOF');
    const env = { PATH: process.env.PATH, MEDIA_KEY: gateway.inferenceKey };
    const run = promisify(execFile);
    await run("bash", ["-c", await copied("curl")], { cwd: folder, env });
    const whole = JSON.parse(await readFile(join(folder, "images.json"), "utf8"));
    expect(whole.data).toEqual([{ media_type: "image/webp", b64_json: expect.any(String) }]);
    await page.getByRole("tab", { name: "JavaScript" }).click();
    await writeFile(join(folder, "call.mjs"), await copied("JavaScript"));
    await run(process.execPath, ["call.mjs"], { cwd: folder, env });
    expect((await readFile(join(folder, "image-1.webp"))).subarray(8, 12).toString()).toBe("WEBP");
    await page.getByText("With my key in it").filter({ visible: true }).click();
    await waitUntil(async () => (await copied("JavaScript")).includes(gateway.inferenceKey));
    expect(await page.content()).not.toContain(gateway.inferenceKey);
    await page.getByRole("tab", { name: "Speech" }).click();
    await run("bash", ["-c", await copied("curl")], { cwd: folder, env });
    expect((await readFile(join(folder, "speech.mp3"))).length).toBeGreaterThan(1000);
  });

  test("works by keyboard, and keeps what is typed where it is out of sight", async () => {
    const opened = await openPlayground();
    const { page } = opened;
    await page.getByRole("textbox", { name: "Text" }).fill("Kept.");
    await page.getByRole("tab", { name: "Speech" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("textbox", { name: "Prompt" }).waitFor();
    expect(new URL(page.url()).hash).toBe("#/playground/images");
    await page.keyboard.press("ArrowLeft");
    expect(await page.getByRole("textbox", { name: "Text" }).inputValue()).toBe("Kept.");
    await page.getByRole("button", { name: "Speak" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("All of it has arrived.").waitFor();
  });

  test("stays as it is when its key stops working", async () => {
    const headers = { authorization: `Bearer ${gateway.managementKey}`, "content-type": "application/json" };
    const keys = `${gateway.baseUrl}/api/v1/keys`;
    const made = await fetch(keys, { method: "POST", headers, body: '{"name":"Short-lived"}' });
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
    const { page } = await openPlayground({ keys: { inferenceKey: key } });
    await page.getByRole("textbox", { name: "Text" }).fill("Not lost.");
    await fetch(`${keys}/${data.hash}`, { method: "DELETE", headers });
    await waitUntil(async () => {
      const button = page.getByRole("button", { name: "Speak" });
      if (await button.isEnabled().catch(() => false)) await button.click({ timeout: 500 }).catch(() => {});
      return page.getByText("The key stopped working").isVisible();
    });
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe("Not lost.");
  });

  test("says what to do where no model is there, and what went wrong where the list does not come", async () => {
    const opened = await openPlayground();
    const { page } = opened;
    await page.route(/\/models(\?|$)/, (route) => route.fulfill({ json: { data: [] } }));
    await page.reload();
    await page.getByText("No model speaks here yet").waitFor();
    await page.getByText("No model draws here yet").waitFor({ state: "attached" });
    expect(await violationsOf(opened)).toEqual([]);
    const error = { code: 429, message: "Rate limited", metadata: { reason: "rate_limited" } };
    await page.route(/\/models(\?|$)/, (route) => route.fulfill({ status: 429, json: { error } }));
    await page.reload();
    await page.getByText("Too many requests in a short time.").first().waitFor();
    await page.unroute(/\/models(\?|$)/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Speak" }).waitFor();
  });

  test("asks for a key without one", async () => {
    const opened = await openPlayground({ keys: {} });
    await opened.page.getByText("This needs an inference key").waitFor();
    expect(await violationsOf(opened)).toEqual([]);
  });

  test.for([
    ["light", undefined],
    ["dark", undefined],
    ["light", phone],
    ["dark", phone],
  ] as const)("has nothing that keeps people out: %s %o", async ([colorScheme, size]) => {
    const opened = await openPlayground({ browser: { colorScheme, ...size } });
    const { page } = opened;
    await page.getByRole("button", { name: "Speak" }).click();
    await waitUntil(async () => (await textOf(figure(opened, "Cost"))).startsWith("$"));
    expect(await violationsOf(opened)).toEqual([]);
    await page.getByRole("tab", { name: "Images" }).click();
    await page.getByRole("button", { name: "Draw" }).click();
    await waitUntil(async () => (await textOf(figure(opened, "Cost"))).startsWith("$"));
    expect(await violationsOf(opened)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await evaluated(opened, overflow)).toBeLessThanOrEqual(0);
    expect(opened).toMatchObject(clean);
  });
});

async function choose({ page }: ConsolePage, label: string, option: string | RegExp): Promise<void> {
  await page.getByRole("button", { name: label }).filter({ visible: true }).click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

/** A picture, made by the page's own browser. */
async function pngOf({ page }: ConsolePage): Promise<Buffer> {
  const url = await page.evaluate(`(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
    canvas.getContext("2d").fillRect(8, 8, 32, 32);
    return canvas.toDataURL("image/png");
  })()`);
  return Buffer.from(String(url).split(",")[1] ?? "", "base64");
}

/** Drops a file, as a mouse brings it from elsewhere. */
async function drop({ page }: ConsolePage, name: string, content: Buffer): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, name), content);
  const zone = page.locator(".drop-zone");
  await zone.scrollIntoViewIfNeeded();
  const { x = 0, y = 0 } = (await zone.boundingBox()) ?? {};
  const debuggerSession = await page.context().newCDPSession(page);
  const data = { items: [], files: [join(folder, name)], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"] as const) {
    await debuggerSession.send("Input.dispatchDragEvent", { type, x: x + 8, y: y + 8, data });
  }
}
