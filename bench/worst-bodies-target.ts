/** A gateway over services that are played, and a probe in it; the other side of bench/worst-bodies.ts. */

import { imageFinished, imageStarted, wholeImage } from "../test/support/gateway-images.ts";
import { startGatewayServer } from "../test/support/gateway-server.ts";

/** What the target tells once a request is over. */
export interface Probe {
  /** Most CPU time of the main thread between two turns of the loop, ms: how long a neighbour waits for it. */
  readonly longestTurnMs: number;
  /** Most that heap and buffers grew, bytes. */
  readonly grownBytes: number;
}

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Looks at each turn of the loop until it is stopped. */
function startProbe(): () => Probe {
  globalThis.gc?.();
  const before = usedBytes();
  let [longestUs, most, isRunning] = [0, before, true];
  let last = process.threadCpuUsage();
  const look = () => {
    const { user, system } = process.threadCpuUsage(last);
    longestUs = Math.max(longestUs, user + system);
    most = Math.max(most, usedBytes());
    last = process.threadCpuUsage();
    if (isRunning) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isRunning = false;
    return { longestTurnMs: longestUs / 1000, grownBytes: most - before };
  };
}

const gateway = await startGatewayServer({
  imageHandlers: {
    async *generate() {
      yield imageStarted();
      yield* wholeImage(0, Buffer.from("x"));
      yield imageFinished();
    },
  },
});
process.on("message", (message) => {
  if (message !== "begin") return;
  const stop = startProbe();
  process.once("message", () => process.send?.(stop()));
  process.send?.("begun");
});
process.on("disconnect", () => process.exit());
process.send?.(gateway.baseUrl);
