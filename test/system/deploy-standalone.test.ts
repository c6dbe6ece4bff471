import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { isApiKey } from "../../lib/identity/api-key.ts";
import { repositoryRoot } from "../rules/source-files.ts";
import { imageUnavailable, withImageWorkshop } from "../support/image-workshop.ts";
import { removeDataDirectory, temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { speak } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A build installs every package anew. */
vi.setConfig({ testTimeout: 1_200_000 });

const user = 65532;

/** As a container engine runs it with --read-only and a volume: $1 is the root, $2 the volume. */
const sandbox = `set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$2" "$1/data"
for place in proc dev; do mount --rbind "/$place" "$1/$place"; done
root="$1"; shift 2
exec setpriv --no-new-privs chroot --userspec=${user}:${user} --groups= "$root" /usr/bin/env --chdir=/data "$@"`;

/** What runs in the image with its environment and that of `docker run --env`. */
class Container {
  readonly #place: readonly string[];
  readonly #env: Readonly<Record<string, string>>;

  constructor(root: string, volume: string, env: Readonly<Record<string, string>>) {
    this.#place = ["--mount", "--propagation=private", "sh", "-c", sandbox, "sh", root, volume];
    this.#env = env;
  }

  run(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const inside = Object.entries({ ...this.#env, ...more }).map(([name, value]) => `${name}=${value}`);
    const child: ChildProcess = spawn("unshare", [...this.#place, ...inside, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => lines.push(line));
    }
    const ended = once(child, "close").then(([code]) => code as number | null);
    onTestFinished(() => void child.kill("SIGKILL"));
    return { child, lines, ended };
  }

  /** The whole gateway; resolves once it serves. */
  async serve() {
    const { child, lines, ended } = this.run(["media-gateway", "start"]);
    const portOf = (what: string) =>
      waitUntil(
        () => {
          if (child.exitCode !== null) throw new Error(`it ended too early:\n${lines.join("\n")}`);
          const found = lines.find(
            (line) => line.includes('"listening"') && line.includes(`"what":"${what}"`),
          );
          return found && (JSON.parse(found) as { port: number }).port;
        },
        { timeoutMs: 180_000 },
      );
    const [rpcPort, restPort] = [await portOf("rpc"), await portOf("rest")];
    const stop = () => {
      child.kill("SIGTERM");
      return ended;
    };
    return { restPort, rpcPort, baseUrl: `http://127.0.0.1:${restPort}`, lines, stop };
  }
}

/** The exec form of the image's health check; images of the OCI's form hold none to be read from. */
function healthCheck(): readonly string[] {
  const dockerfile = readFileSync(join(repositoryRoot, "deploy/Dockerfile"), "utf8");
  return JSON.parse(/HEALTHCHECK[^[]*CMD (\[.*\])/.exec(dockerfile)?.[1] ?? "[]") as string[];
}

async function expectToSpeak(baseUrl: string, key: string): Promise<void> {
  const answer = await speak({ baseUrl }, key, { model: "local/flite", input: "Hello." });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
  expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(1000);
}

test("the target standalone runs all of it on a volume, as nobody in particular, and logs no key", async (context) => {
  const reason = imageUnavailable();
  if (reason !== undefined) context.skip(reason);
  const volume = await temporaryDirectory();
  chownSync(volume, user, user);
  await withImageWorkshop(async (workshop) => {
    workshop.build("standalone", "standalone");
    const { config } = workshop.describe("standalone");
    expect(config.User).toBe(`${user}:${user}`);
    expect([config.Entrypoint, config.Cmd]).toEqual([["media-gateway"], ["start"]]);
    expect(Object.keys(config.Volumes ?? {})).toEqual(["/data"]);
    const given = Object.fromEntries(config.Env.map((each) => each.split(/=(.*)/s).slice(0, 2)));
    const free = { PORT: "0", RPC_PORT: "0", METRICS_PORT: "off" };
    const container = new Container(workshop.mount("standalone"), volume, { ...given, ...free });

    const first = await container.serve();
    const sick = container.run(healthCheck(), { PORT: "9" });
    expect(await sick.ended).toBe(1);
    const healthy = container.run(healthCheck(), { PORT: String(first.restPort) });
    expect(await healthy.ended, healthy.lines.join("\n")).toBe(0);
    const command = container.run(["media-gateway", "key", "create", "--scopes", "speech"], {
      RPC_PORT: String(first.rpcPort),
    });
    expect(await command.ended, command.lines.join("\n")).toBe(0);
    const key = command.lines.find(isApiKey) ?? "";
    await expectToSpeak(first.baseUrl, key);
    expect(await first.stop()).toBe(0);
    expect(globSync("postgres/cluster/postmaster.pid", { cwd: volume })).toEqual([]);

    const second = await container.serve();
    await expectToSpeak(second.baseUrl, key);
    expect(await second.stop()).toBe(0);
    for (const { lines } of [first, second]) expect(lines.join("\n")).not.toContain("sk-");
  });
  await removeDataDirectory(volume);
});
