import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onTestFinished, type TestContext } from "vitest";
import type { Standalone } from "../support/processes/standalone.ts";

const executable = "/usr/bin/chromium";
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** A page of the console in a real browser, with all that it did which it must not. */
export interface ConsolePage {
  readonly page: Page;
  /** Requests to another origin than the gateway's. */
  readonly foreign: readonly string[];
  /** Errors that the page wrote or threw, among them every breach of its security policy. */
  readonly complaints: readonly string[];
}

/** How a page is opened. */
export interface OpenOptions {
  /** What stands behind `#`, such as `/requests`. */
  readonly path?: string;
  /** The keys that the tab begins with. */
  readonly keys?: { readonly inferenceKey?: string; readonly managementKey?: string };
  readonly browser?: BrowserContextOptions;
}

/** Skips a test where there is no browser. */
export function needBrowser(context: TestContext): void {
  if (!existsSync(executable)) context.skip(`${executable} (Debian's package chromium)`);
}

/** Opens the console of a gateway; the browser is closed with the test. */
export async function openConsole(
  { baseUrl }: Pick<Standalone, "baseUrl">,
  { path = "/", keys = {}, browser: settings = {} }: OpenOptions = {},
): Promise<ConsolePage> {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "UTC", ...settings });
  const held = Object.entries({ inference: keys.inferenceKey, management: keys.managementKey });
  const stored = JSON.stringify(Object.fromEntries(held.filter(([, secret]) => secret !== undefined)));
  await context.addInitScript(`sessionStorage["media-gateway-keys"] ??= ${JSON.stringify(stored)}`);
  const page = await context.newPage();
  const foreign: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["blob:", "data:"].includes(url.protocol) && url.origin !== baseUrl) foreign.push(request.url());
  });
  page.on("console", (message) => {
    // Chromium writes one for every answer that is an error, which tests of errors want.
    const isOwn = !message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && isOwn) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${baseUrl}/#${path}`);
  return { page, foreign, complaints };
}

function launch(): Promise<Browser> {
  // The tests' container has no user namespaces for the sandbox, and little shared memory.
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required"];
  return chromium.launch({ executablePath: executable, args });
}

/** A breach of what makes a page usable for all. */
export interface Violation {
  readonly rule: string;
  readonly where: readonly string[];
}

/** What axe finds wrong with the page as it stands now. */
export async function violationsOf({ page }: ConsolePage): Promise<Violation[]> {
  // Run by the debugger, which no policy of the page keeps out.
  await page.evaluate(await readFile(axeSource, "utf8"));
  return (await page.evaluate(`
    axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => ({ rule: id, where: nodes.map(({ target, failureSummary }) => target.join(" ") + ": " + failureSummary) })))
  `)) as Violation[];
}
