import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { createConnection } from "node:net";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { isApiKey } from "../../lib/identity/api-key.ts";
import { temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { speak } from "../support/processes/standalone.ts";
import { copyRepository } from "../support/repository-copy.ts";
import { waitUntil } from "../support/wait-until.ts";

/** It is built once and installed twice. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 900_000 });

/** The machine's own Node.js, npm and npx: those of a newcomer. */
const { PATH: path = "", HOME: home = "" } = process.env;
const outside = path.split(delimiter).filter((folder) => !folder.includes("node_modules"));
const env = { PATH: outside.join(delimiter), HOME: home, npm_config_update_notifier: "false" };

let tarball: string;
/** The folder in which it is installed. */
let folder: string;

beforeAll(async () => {
  const root = await copyRepository();
  const packed = await temporaryDirectory();
  npm(root, "pack", "--pack-destination", packed);
  tarball = join(packed, globSync("*.tgz", { cwd: packed })[0] ?? "");
  folder = await temporaryDirectory();
  npm(folder, "install", "--prefer-offline", tarball);
});

function npm(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm ${args.join(" ")} failed:\n${stdout}${stderr}`);
  return stdout;
}

/** Runs the program to its end, by npx unless told. */
function run(words: readonly string[], program = ["npx", "--no-install", "media-gateway"], cwd = folder) {
  const [command = "", ...args] = [...program, ...words];
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: "utf8" });
  return { status, stdout, stderr };
}

describe("the package, installed in an empty folder", () => {
  test("holds JavaScript alone, and few packages beside it", () => {
    const installed = join(folder, "node_modules");
    expect(globSync("media-gateway/**/*.ts", { cwd: installed })).toEqual([]);
    const names = globSync("{@*/*,[^@.]*}", { cwd: installed });
    expect(names).toEqual(expect.arrayContaining(["media-gateway", "sharp", "piscina"]));
    expect(names.filter((name) => ["kysely", "undici", "typescript", "yaml"].includes(name))).toEqual([]);
  });

  test("tells what it can", () => {
    const { status, stdout } = run(["--help"]);
    expect(status).toBe(0);
    expect(stdout).toContain("usage: media-gateway [start] [--port <n>] [--data-dir <folder>]");
    expect(stdout).toContain("doctor");
    expect(run(["--version"]).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
    expect(run(["start", "--nonsense"])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: Unknown option '--nonsense'.*; --help tells what there is$/m),
    });
    expect(run(["migrate"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("error: configuration: DATABASE_URL is required"),
    });
  });

  test("starts, speaks, takes operators' commands, and stops with its database", async () => {
    const dataDir = await temporaryDirectory();
    const started = start(["--port", "0", "--data-dir", dataDir]);
    const [rpcPort, restPort] = [await started.port("rpc"), await started.port("rest")];
    const key = await started.key();
    const body = { model: "local/flite", input: "Hello." };
    const answer = await speak({ baseUrl: `http://127.0.0.1:${restPort}` }, key, body);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(1000);

    Object.assign(env, { DATA_DIR: dataDir, RPC_PORT: String(rpcPort) });
    const made = run(["key", "create", "--scopes", "speech"]);
    expect(made.stdout.split("\n").filter(isApiKey)).toHaveLength(1);

    expect(await started.stop()).toBe(0);
    await waitUntil(() => isFree(restPort));
    expect(globSync("postgres/cluster/postmaster.pid", { cwd: dataDir })).toEqual([]);
  });
});

/** The program itself: npx hands no signal on. */
const bin = () => join(folder, "node_modules", ".bin", "media-gateway");

function start(words: readonly string[]) {
  const child: ChildProcess = spawn(bin(), words, {
    cwd: folder,
    env: { ...env, RPC_PORT: "0", METRICS_PORT: "off" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const found = (pattern: RegExp) =>
    waitUntil(
      () => {
        if (child.exitCode !== null) throw new Error(`it ended too early:\n${lines.join("\n")}`);
        return lines.map((line) => pattern.exec(line)?.[1]).find((text) => text !== undefined);
      },
      { timeoutMs: 120_000 },
    );
  return {
    port: async (what: string) =>
      Number(await found(new RegExp(`"what":"${what}".*"port":(\\d+).*listening`))),
    key: () => found(/^ +inference +(sk-\S+)$/),
    async stop() {
      const ended = once(child, "close");
      child.kill("SIGTERM");
      return (await ended)[0] as number | null;
    },
  };
}

function isFree(port: number): Promise<boolean> {
  const socket = createConnection(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.on("connect", () => resolve(false)).on("error", () => resolve(true));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

test("says in one line when npm's install scripts did not run", async (context) => {
  const blocked = await temporaryDirectory();
  npm(blocked, "install", "--prefer-offline", "--ignore-scripts", tarball);
  const program = join(blocked, "node_modules", "media-gateway", "commands", "bin.cjs");
  Object.assign(env, { DATA_DIR: await temporaryDirectory(), RPC_PORT: "0", METRICS_PORT: "off", PORT: "0" });

  const withOwn = run([], [process.execPath, program], blocked);
  const told = withOwn.stderr.trim().split("\n");
  expect([withOwn.status, told]).toEqual([
    1,
    [
      expect.stringMatching(
        /^error: .*postgres does not run .*; reinstall with npm's install scripts allowed/,
      ),
    ],
  ]);

  const { stdout: version } = run(["--version"], ["node"], blocked);
  if (Number(/^v(\d+)/.exec(version)?.[1]) >= 24) context.skip("a Node.js before 24 on the PATH");
  expect(run([], ["node", program], blocked)).toEqual({
    status: 1,
    stdout: "",
    stderr: expect.stringMatching(
      /^error: npm's install scripts have not run, so that Node\.js 24 is missing: .*\n$/,
    ),
  });
});
