/** A gateway and an RPC port over services that are played, and a probe in them; the other side of bench/worst-bodies.ts. */
import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { imageMessageLimits } from "../../lib/limits/image-messages.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { rpcServices } from "../../test/attack/rpc-services.ts";
import { imageFinished, imageStarted, wholeImage } from "../../test/support/services/gateway-images.ts";
import {
  bytesFrame,
  finishedFrame,
  startedFrame,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";

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

/** A turn of the loop that took so long may have taken memory, µs. */
const workUs = 100;

function threadUs(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/**
 * Looks at each turn of the loop until it is stopped. For memory, garbage is collected after each turn that did
 * something: what counts is what is alive and what one turn throws away, not what the collector had no reason to look
 * at yet; the collector's time is not part of a turn then.
 */
function startProbe(what: "turns" | "memory"): () => Probe {
  globalThis.gc?.();
  const before = usedBytes();
  let [longestUs, mostBytes, isRunning] = [0, before, true];
  let lastUs = threadUs();
  const look = () => {
    const turnUs = threadUs() - lastUs;
    longestUs = Math.max(longestUs, turnUs);
    if (what === "memory" && turnUs > workUs) {
      mostBytes = Math.max(mostBytes, usedBytes());
      globalThis.gc?.({ type: "minor" });
    }
    lastUs = threadUs();
    if (isRunning) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isRunning = false;
    return { longestTurnMs: longestUs / 1000, grownBytes: mostBytes - before };
  };
}

const gateway = await startGatewayServer({
  handlers: {
    async *synthesize() {
      yield startedFrame();
      yield bytesFrame(Buffer.from("x"));
      yield finishedFrame();
    },
  },
  imageHandlers: {
    async *generate() {
      yield imageStarted();
      yield* wholeImage(0, Buffer.from("x"));
      yield imageFinished();
    },
  },
});
/** Answers every RPC with nothing. */
function played(service: DescService): Partial<ServiceImpl<DescService>> {
  const handlers = service.methods.map(({ localName, methodKind }) => {
    async function* nothing() {
      yield* [];
    }
    return [localName, methodKind === "unary" ? () => ({}) : nothing];
  });
  return Object.fromEntries(handlers) as Partial<ServiceImpl<DescService>>;
}

const rpc = await startRpcServer({
  host: "127.0.0.1",
  port: 0,
  services: rpcServices,
  limits: imageMessageLimits(32 << 20),
  routes: (router) => {
    for (const service of rpcServices) router.service(service, played(service));
  },
  readiness: async () => [],
  log: silentLog,
});
process.on("message", (message) => {
  if (message !== "turns" && message !== "memory") return;
  const stop = startProbe(message);
  process.once("message", () => process.send?.(stop()));
  process.send?.("begun");
});
process.on("disconnect", () => process.exit());
process.send?.({ baseUrl: gateway.baseUrl, rpcPort: rpc.port });
