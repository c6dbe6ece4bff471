import { spawnSync } from "node:child_process";
import { copyFile, mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { readText, repositoryRoot } from "../test/rules/source-files.ts";
import { temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";

interface Manifest {
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

const check = "commands/check-node.cjs";
const manifest = JSON.parse(readText("package.json") ?? "") as Manifest;
const floor = manifest.engines.node.replace(">=", "");

/** Runs the Node.js of this test, which npm has installed, in a folder; npm's own is of version `npmNode`. */
function run(args: readonly string[], npmNode: string, cwd: string = repositoryRoot) {
  const agent = `npm/10.8.2 node/v${npmNode} linux x64 workspaces/false`;
  const env = { ...process.env, npm_config_user_agent: agent };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: "utf8" });
  return { status, said: stdout + stderr };
}

/** The check as the only thing of the repository that is there. */
async function emptyCheckout(): Promise<string> {
  const folder = await temporaryDirectory();
  await mkdir(join(folder, "commands"));
  for (const path of ["package.json", ".npmrc", check, "commands/run.cjs"]) {
    await copyFile(join(repositoryRoot, path), join(folder, path));
  }
  return folder;
}

test.for(["10.24.1", "18.20.8", "20.8.1"])(
  "neither an install nor a start goes on with the Node.js %s of npm",
  (version) => {
    const refused = {
      status: 1,
      said: `error: Node.js ${version} is too old: install Node.js ${floor} or newer, then run npm ci\n`,
    };
    expect(run([check], version)).toEqual(refused);
    expect(run(["--require", `./${check}`, "--eval", "console.log('started')"], version)).toEqual(refused);
  },
);

test.for(["20.9.0", "20.20.2", "22.0.0", "24.0.0-rc.1"])("with %s both do", (version) => {
  expect(run([check], version)).toEqual({ status: 0, said: "" });
  expect(run(["--require", `./${check}`, "--eval", "console.log('started')"], version)).toEqual({
    status: 0,
    said: "started\n",
  });
});

test("npm start before npm ci says what is missing, and so it does when install scripts were left out", async () => {
  const folder = await emptyCheckout();
  const path = (process.env.PATH ?? "").split(delimiter);
  const outside = path.filter((entry) => !entry.includes("node_modules")).join(delimiter);
  const start = () => {
    const env = { HOME: folder, PATH: outside, npm_config_update_notifier: "false" };
    const { status, stderr } = spawnSync("npm", ["start"], { cwd: folder, env, encoding: "utf8" });
    return { status, stderr };
  };
  expect(start()).toEqual({ status: 1, stderr: "error: nothing is installed yet: run npm ci first\n" });
  await mkdir(join(folder, "node_modules", "node"), { recursive: true });
  expect(start()).toEqual({
    status: 1,
    stderr: "error: install scripts have not run: run npm ci again, without --ignore-scripts\n",
  });
});

test("the check runs before an install and whatever a newcomer starts", () => {
  expect(manifest.scripts.preinstall).toBe(`node ${check}`);
  expect(manifest.scripts.dev).toContain(`node --require ./${check} `);
  for (const name of ["start", "stack", "admin"])
    expect(manifest.scripts[name], name).toContain("node commands/run.cjs ");
});

test("the versions of Node.js agree: the floor with what sharp asks of npm's, .nvmrc with the one that runs", () => {
  const sharp = JSON.parse(readText("node_modules/sharp/package.json") ?? "") as Pick<Manifest, "engines">;
  expect(sharp.engines.node).toBe(`${manifest.engines.node}.0`);
  expect(manifest.dependencies.node?.split(".")[0]).toBe(readText(".nvmrc")?.trim());
  for (const page of ["README.md", "CONTRIBUTING.md", ".ci/run"]) expect(readText(page)).toMatch(floor);
});
