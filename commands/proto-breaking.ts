/**
 * Checks that the protos break no client of the newest release: `buf breaking` against the highest tag `vX.Y.Z`.
 * Says so and exits 0 when there is no release, or no git, to compare with.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const tag = newestRelease();
if (tag === undefined) {
  console.log("protos: no release to compare with yet");
} else {
  const { status } = spawnSync(
    join(root, "node_modules", ".bin", "buf"),
    ["breaking", "--against", `.git#tag=${tag}`],
    { cwd: root, stdio: "inherit" },
  );
  if (status !== 0) console.error(`protos: they break clients of ${tag}`);
  process.exitCode = status ?? 1;
}

/** Undefined for a source archive as well, which has no tags. */
function newestRelease(): string | undefined {
  if (!existsSync(join(root, ".git"))) return undefined;
  const { stdout } = spawnSync("git", ["tag", "--list", "v*", "--sort=-version:refname"], {
    cwd: root,
    encoding: "utf8",
  });
  return stdout?.split("\n").find((line) => /^v\d+\.\d+\.\d+$/.test(line));
}
