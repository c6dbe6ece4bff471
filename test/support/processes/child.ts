import { setTimeout as delay } from "node:timers/promises";
import { type Child, type ChildOptions, startChild as start } from "../../../commands/stack/child.ts";
import { KeptProcesses } from "../../../commands/stack/kept-processes.ts";
import { endWithFile } from "./leftovers.ts";

export { type Child, type ChildOptions, inheritedEnvironment } from "../../../commands/stack/child.ts";

/** Ends the children with this process, also where that is killed. */
let kept: KeptProcesses | undefined;

/** Starts a script as commands/stack/child.ts does; what still runs at the end of the test file is ended. */
export function startChild(script: string, options: ChildOptions = {}): Child {
  const child = start(script, options);
  kept ??= new KeptProcesses();
  kept.keep(child.pid, child.exited);
  child.exited.then(endWithFile(() => end(child)));
  return child;
}

/** Asks it to end, then to end in a hurry, which takes a database along, then kills it. */
async function end(child: Child): Promise<void> {
  for (const patienceMs of [2000, 10_000]) {
    const gone = child.stop().then(() => true);
    if (await Promise.race([gone, delay(patienceMs, false, { ref: false })])) return;
  }
  await child.kill();
}
