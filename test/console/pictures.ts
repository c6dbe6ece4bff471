/**
 * Pictures of the console in use: those of the README (`node test/console/pictures.ts`), or every page in both themes and at
 * phone width, to be looked at (`--look <folder>`).
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, chromium } from "playwright-core";
import sharp from "sharp";
import { buildConsole } from "../../commands/build/console.ts";
import { type Standalone, type StandaloneKeys, startStandalone } from "../support/processes/standalone.ts";

const images = join(import.meta.dirname, "..", "..", "docs", "images");
const desktop = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };
const paths = [
  ...["", "playground", "playground/images", "requests", "activity", "health", "keys", "credits"],
  ...["provider-keys", "destinations", "models", "models/local/flite"],
];
const prompts = ["A lighthouse at dusk", "A red fox in a snowy forest", "Mountains under two moons"];
const spoken = "Every request is counted once.";

type Scheme = "light" | "dark";

interface View {
  readonly path: string;
  readonly scheme: Scheme;
  readonly viewport: typeof desktop;
}

const { values } = parseArgs({ options: { look: { type: "string" } } });
buildConsole({ whenStale: true });
const dataDir = await mkdtemp(join(tmpdir(), "console-pictures-"));
const gateway = await startStandalone(dataDir);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const { keys } = gateway;
  if (keys === undefined) throw new Error("the gateway showed no keys");
  await use(gateway, keys);
  if (values.look === undefined) await drawForReadme(keys);
  else await drawAll(keys, values.look);
} finally {
  await browser.close();
  await gateway.child.stop();
  await rm(dataDir, { recursive: true, force: true });
}

/** What a first hour may look like. */
async function use({ baseUrl }: Standalone, { inferenceKey }: StandaloneKeys): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  };
  for (const voice of ["slt", "rms", "slt"]) {
    await post("/audio/speech", { model: "local/flite", input: spoken.repeat(4), voice });
  }
  for (const prompt of prompts) await post("/images", { model: "local/painter", prompt });
}

async function drawForReadme(keys: StandaloneKeys): Promise<void> {
  const playground = await screenshot(browser, keys, {
    path: "playground/images",
    scheme: "light",
    viewport: desktop,
  });
  const activity = await screenshot(browser, keys, { path: "activity", scheme: "dark", viewport: desktop });
  for (const [name, png] of Object.entries({ playground, activity })) {
    await sharp(png)
      .webp({ quality: 82 })
      .toFile(join(images, `console-${name}.webp`));
  }
}

async function drawAll(keys: StandaloneKeys, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const path of paths) {
    for (const [name, viewport] of Object.entries({ desktop, phone })) {
      for (const scheme of ["light", "dark"] as const) {
        const png = await screenshot(browser, keys, { path, scheme, viewport });
        const file = `${path.replaceAll("/", "-") || "welcome"}-${name}-${scheme}.png`;
        await sharp(png).toFile(join(folder, file));
      }
    }
  }
}

/** A page when it has nothing more to load; of the images' playground, with a picture made in it. */
async function screenshot(
  browser: Browser,
  keys: StandaloneKeys,
  { path, scheme, viewport }: View,
): Promise<Buffer> {
  const context = await browser.newContext({
    locale: "en-GB",
    timezoneId: "UTC",
    colorScheme: scheme,
    viewport,
  });
  const stored = JSON.stringify({ inference: keys.inferenceKey, management: keys.managementKey });
  await context.addInitScript(`sessionStorage["media-gateway-keys"] ??= ${JSON.stringify(stored)}`);
  const page = await context.newPage();
  await page.goto(`${gateway.baseUrl}/#/${path}`);
  await page.waitForLoadState("networkidle");
  if (path === "playground/images") {
    await page.getByRole("textbox", { name: "Prompt" }).fill(prompts[0] ?? "");
    await page.getByRole("button", { name: "Draw" }).click();
    await page.getByRole("link", { name: "Download" }).waitFor();
    await page.getByText("being counted").waitFor({ state: "hidden" });
    await page.evaluate("scrollTo(0, 0)");
  }
  const png = await page.screenshot({ fullPage: values.look !== undefined });
  await context.close();
  return png;
}
