/**
 * What a call between two processes costs each of them: CPU a call of the client and of the server, with the library's
 * handlers and transport and with ours, on every side alike (docs/decisions/0024-direct-rpc.md).
 *
 *     node bench/rpc.ts [--client stock|direct] [--server stock|direct] [--rounds 3] [--scale 1]
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { createRemoteTransport, createRpcClient } from "../lib/rpc/client.ts";
import { serverInterceptor } from "../lib/rpc/interceptors.ts";
import { startRpcServer } from "../lib/rpc/server.ts";
import { silentLog } from "../lib/runtime/log.ts";

const frames = 20;
const frameBytes = 4096;
const paceMs = 10;

type SpeechClient = Client<typeof SpeechService>;
type Side = "stock" | "direct";

interface Workload {
  readonly name: string;
  readonly calls: number;
  readonly inFlight: number;
  run(client: SpeechClient): Promise<unknown>;
}

const workloads: readonly Workload[] = [
  { name: "unary, one at a time", calls: 5000, inFlight: 1, run: (client) => client.listSpeechModels({}) },
  { name: "unary, 8 at once", calls: 8000, inFlight: 8, run: (client) => client.listSpeechModels({}) },
  { name: "20 frames at once, 16 in flight", calls: 2000, inFlight: 16, run: (client) => take(client, "") },
  {
    name: "a frame each 10 ms, 16 in flight",
    calls: 160,
    inFlight: 16,
    run: (client) => take(client, "paced"),
  },
];

async function take(client: SpeechClient, input: string): Promise<void> {
  let bytes = 0;
  for await (const { frame } of client.synthesize({ input })) {
    if (frame.case === "audio") bytes += frame.value.length;
  }
  if (bytes !== frames * frameBytes) throw new Error(`${bytes} bytes came`);
}

async function serve(): Promise<void> {
  const audio = Buffer.alloc(frameBytes, 7);
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [SpeechService],
    routes: (router) =>
      router.service(
        SpeechService,
        {
          listSpeechModels: () => ({ models: [{ id: "acme/one" }] }),
          async *synthesize({ input }) {
            for (let sent = 0; sent < frames; sent += 1) {
              if (input === "paced") await pause(paceMs);
              yield { frame: { case: "audio", value: audio } };
            }
          },
        },
        { interceptors: [serverInterceptor(silentLog)] },
      ),
    readiness: async () => [],
    log: silentLog,
  });
  process.on("message", () => process.send?.(process.cpuUsage()));
  process.on("disconnect", () => process.exit());
  process.send?.(server.port);
}

/** What says anything of compression is left to the library. */
const forStockServer: Interceptor = (next) => (request) => {
  request.header.set(request.stream ? "connect-accept-encoding" : "accept-encoding", "identity");
  return next(request);
};

function transportOf(client: Side, server: Side, baseUrl: string): Transport {
  const interceptors = server === "stock" ? [forStockServer] : [];
  if (client === "direct") return createRemoteTransport({ baseUrl, interceptors });
  const agent = new Agent({ keepAlive: true });
  const limits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };
  return createConnectTransport({
    ...limits,
    baseUrl,
    httpVersion: "1.1",
    nodeOptions: { agent },
    acceptCompression: [],
    defaultTimeoutMs: 5000,
    interceptors,
  });
}

interface Cost {
  readonly clientUs: number;
  readonly serverUs: number;
}

async function measure(
  workload: Workload,
  client: SpeechClient,
  serverCpu: () => Promise<number>,
  scale: number,
): Promise<Cost> {
  const calls = Math.ceil(workload.calls * scale);
  let left = calls;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await workload.run(client);
    }
  };
  const before = [cpuUs(process.cpuUsage()), await serverCpu()] as const;
  await Promise.all(Array.from({ length: workload.inFlight }, worker));
  const after = [cpuUs(process.cpuUsage()), await serverCpu()] as const;
  return { clientUs: (after[0] - before[0]) / calls, serverUs: (after[1] - before[1]) / calls };
}

function cpuUs({ user, system }: NodeJS.CpuUsage): number {
  return user + system;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function compare(): Promise<void> {
  const { values } = parseArgs({
    options: {
      client: { type: "string" },
      server: { type: "string" },
      rounds: { type: "string", default: "3" },
      scale: { type: "string", default: "1" },
    },
  });
  const sides = ["stock", "direct"] as const;
  const wanted = (side: string | undefined) => sides.filter((each) => side === undefined || each === side);
  const child = fork(import.meta.filename, ["serve"]);
  const [port] = await once(child, "message");
  const serverCpu = async () => {
    const answer = once(child, "message");
    child.send("cpu");
    return cpuUs((await answer)[0]);
  };
  const pairs = wanted(values.client).flatMap((client) =>
    wanted(values.server).map((server) => {
      const transport = transportOf(client, server, `http://127.0.0.1:${port}`);
      return {
        name: `${client} client, ${server} server`,
        client: createRpcClient(SpeechService, transport),
      };
    }),
  );
  for (const workload of workloads) {
    const costs = new Map(pairs.map(({ name }) => [name, [] as Cost[]]));
    for (const { client } of pairs) await measure(workload, client, serverCpu, Number(values.scale) / 4);
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const { name, client } of pairs) {
        costs.get(name)?.push(await measure(workload, client, serverCpu, Number(values.scale)));
      }
    }
    console.log(`${workload.name}: CPU a call, µs, client + server`);
    for (const [name, measured] of costs) {
      const client = median(measured.map(({ clientUs }) => clientUs)).toFixed(0);
      const server = median(measured.map(({ serverUs }) => serverUs)).toFixed(0);
      console.log(`  ${name.padEnd(30)}${client.padStart(6)} + ${server}`);
    }
  }
  child.disconnect();
  // Kept connections hold the process otherwise.
  process.exit();
}

if (process.argv[2] === "serve") await serve();
else await compare();
