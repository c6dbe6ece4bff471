/**
 * Lives beside an attack, in a thread of its own so that the attacker's work is not in what it measures: asks for what
 * needs no work, on one connection, one request after another, until it is told to leave; then says how it went.
 */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** Whom it asks. */
export interface NeighbourOptions {
  readonly port: number;
  readonly key: string;
}

/** How it went. */
export interface NeighbourReport {
  readonly longestWaitMs: number;
  /** What came in place of 200. */
  readonly faults: readonly string[];
}

if (parentPort !== null) await live(workerData as NeighbourOptions, parentPort);

async function live(options: NeighbourOptions, house: NonNullable<typeof parentPort>): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const faults: string[] = [];
  let longestWaitMs = 0;
  let leaving = false;
  house.once("message", () => {
    leaving = true;
  });
  house.postMessage("there");
  while (!leaving) {
    const startedMs = performance.now();
    const status = await ask(options, agent).catch((thrown: Error) => thrown.message);
    longestWaitMs = Math.max(longestWaitMs, performance.now() - startedMs);
    if (status !== 200) faults.push(`${status}`);
  }
  agent.destroy();
  house.postMessage({ longestWaitMs, faults } satisfies NeighbourReport);
}

function ask({ port, key }: NeighbourOptions, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const asked = request({ port, path: "/api/v1/key", agent, headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    });
    asked.on("error", reject).end();
  });
}
