/**
 * A process that kills others with SIGKILL when its stdin ends, however its parent ended, those that are stopped
 * included. Lines on stdin: `+<pid>` puts a process on its list, `-<pid>` takes it off.
 */
import { createInterface } from "node:readline";

watch();

function watch(): void {
  const pids = new Set<number>();
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const pid = Number(line.slice(1));
      if (line.startsWith("+")) pids.add(pid);
      else pids.delete(pid);
    })
    .on("close", () => {
      for (const pid of pids) kill(pid);
      process.exit(0);
    });
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
