import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from "vitest";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { needBrowser, openConsole } from "./open-console.ts";

const linkPattern = /#(\/link\/([\w-]{43}))$/;
let gateway: TestStandalone;

beforeAll(async () => {
  gateway = await startTestStandalone();
});

afterAll(() => gateway.close());

beforeEach((context: TestContext) => needBrowser(context));

function linksOf({ child }: TestStandalone): string[] {
  return child.lines.flatMap((line) => linkPattern.exec(line)?.[1] ?? []);
}

describe("a login link", () => {
  test("signs in once; the code leaves the address at once and stands in no log", async () => {
    const [path = ""] = linksOf(gateway);
    const opened = await openConsole(gateway, { path });
    const { page } = opened;
    await page.getByText("You are signed in.").waitFor();
    await page
      .getByText("1 inference · 1 management", { exact: false })
      .or(page.getByText(/2 inference/))
      .waitFor();
    expect(new URL(page.url()).hash).toBe("#/");
    expect(opened).toMatchObject({ foreign: [], complaints: [] });
    const kept = String(await page.evaluate("JSON.stringify(localStorage)"));
    const secrets = Object.values(
      JSON.parse(String(await page.evaluate('sessionStorage["media-gateway-keys"]'))),
    );
    expect(secrets).toHaveLength(2);
    const logged = gateway.child.lines.filter((line) => line.startsWith("{")).join("\n");
    for (const secret of [path.split("/").at(-1), ...secrets]) {
      expect(logged).not.toContain(secret);
      expect(kept).not.toContain(secret);
    }
    const second = await openConsole(gateway, { path });
    await second.page.getByText("This link was used before").waitFor();
    expect(await second.page.evaluate('sessionStorage["media-gateway-keys"]')).toBe("{}");
  });

  test("comes from the command line at any time", async () => {
    const env = { DATA_DIR: gateway.dataDir, RPC_PORT: String(gateway.rpcPort) };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["commands/admin.ts", "console-link", "create", "--url", gateway.baseUrl],
      { env: { ...process.env, ...env } },
    );
    expect(stdout.trim()).toMatch(linkPattern);
    expect(stdout.startsWith(`${gateway.baseUrl}/#/link/`)).toBe(true);
    const { page } = await openConsole(gateway, { path: linkPattern.exec(stdout.trim())?.[1] ?? "" });
    await page.getByText("You are signed in.").waitFor();
  });

  test.for([{ HOST: "0.0.0.0" }, { PUBLIC_URL: "https://media.example.test" }, { CONSOLE: "off" }])(
    "is not shown with %o",
    async (env) => {
      const other = await startTestStandalone(env);
      expect(linksOf(other)).toEqual([]);
      expect(other.child.lines.some((line) => line.includes("The console"))).toBe(!("CONSOLE" in env));
      await other.close();
    },
  );
});

describe("a key", () => {
  test("comes to the place of its kind when it is pasted", async () => {
    const { page } = await openConsole(gateway);
    await page.getByRole("textbox", { name: "Inference key" }).fill(gateway.managementKey);
    await page.getByRole("button", { name: "Use this key" }).first().click();
    await page.getByText("That is a management key").waitFor();
    await page.getByRole("textbox", { name: "Inference key" }).fill(gateway.inferenceKey);
    await page.getByRole("button", { name: "Use this key" }).first().click();
    await page.getByRole("button", { name: "Speak" }).waitFor();
    await page.getByRole("button", { name: "2 keys" }).waitFor();
  });

  test("that is revoked in mid-use leaves the page as it is, and another one goes on", async () => {
    const made = await makeKey("Short-lived");
    const { page } = await openConsole(gateway, {
      keys: { inferenceKey: made.key, managementKey: gateway.managementKey },
    });
    await page.getByLabel("Text").fill("These words must not be lost.");
    await deleteKey(made.data.hash);
    await expect
      .poll(
        async () => {
          const button = page.getByRole("button", { name: "Speak" });
          if (await button.isEnabled().catch(() => false))
            await button.click({ timeout: 500 }).catch(() => {});
          return page.getByText("The key stopped working").isVisible();
        },
        { timeout: 30_000 },
      )
      .toBe(true);
    await page.getByText("The gateway does not know this key.").first().waitFor();
    await page.getByRole("textbox", { name: "Inference key" }).fill(gateway.inferenceKey);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("The key stopped working").waitFor({ state: "detached" });
    expect(await page.getByLabel("Text").inputValue()).toBe("These words must not be lost.");
    await page.getByRole("button", { name: "Speak" }).click();
    await page.getByLabel("What was spoken").waitFor();
  });
});

async function makeKey(name: string): Promise<{ key: string; data: { hash: string } }> {
  const response = await manage("POST", "/keys", { name });
  return (await response.json()) as { key: string; data: { hash: string } };
}

async function deleteKey(hash: string): Promise<void> {
  await (await manage("DELETE", `/keys/${hash}`)).text();
}

function manage(method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${gateway.managementKey}`, "content-type": "application/json" };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  return fetch(`${gateway.baseUrl}/api/v1${path}`, { method, headers, ...content });
}
