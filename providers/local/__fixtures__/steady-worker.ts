import { workerData } from "node:worker_threads";

/** A worker that waits at the gate of its task, if there is one, and answers with its name and what its thread has. */
export function run({ name, gate }: { name: string; gate?: Int32Array<SharedArrayBuffer> }): string {
  if (gate !== undefined) Atomics.wait(gate, 0, 0);
  return `${name} ${workerData}`;
}
