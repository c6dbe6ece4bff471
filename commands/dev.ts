/**
 * `npm run dev`: the whole gateway as `npm start` runs it, stopped and started again by Node's own watch mode whenever a
 * file that it is made of changes. Ends as gracefully as `npm start`; a second signal ends it at once.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

/** Folders whose files a running gateway reads. */
const watched = ["catalog", "gateway", "gen", "lib", "packages", "providers", "services", "standalone"];

const root = join(import.meta.dirname, "..");

const watcher = startWatcher();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => watcher.kill(signal === "SIGHUP" ? "SIGTERM" : signal));
}
watcher.on("exit", (code, signal) => {
  process.exitCode = signal === null ? (code ?? 0) : 1;
});

/**
 * Out of reach of the signals that a terminal sends: the watcher hands on the one that it is sent, and a gateway that
 * hears of Ctrl-C from both would take the second for a wish to end at once, its PostgreSQL left behind.
 */
function startWatcher(): ChildProcess {
  const paths = watched.map((folder) => `--watch-path=${join(root, folder)}`);
  return spawn(process.execPath, ["--watch-preserve-output", ...paths, join(root, "standalone", "main.ts")], {
    stdio: "inherit",
    detached: true,
  });
}
