import { spawn } from "node:child_process";
import { once } from "node:events";
import { createClient } from "@redis/client";
import type { TestContext } from "vitest";
import { freePort } from "../../../commands/stack/free-ports.ts";
import { redisArguments, redisIsInstalled, redisProgram } from "../../../commands/stack/redis-process.ts";
import { waitUntil } from "../wait-until.ts";

/** A Redis of a test's own, which keeps nothing on disk. */
export interface RedisServer {
  readonly url: string;
  /** SIGKILL, then waits for the end. */
  kill(): Promise<void>;
  /** Starts it again, empty, on the port that it had. */
  restart(): Promise<void>;
  /** Lets it hang: connections stay open and nothing is answered. */
  pause(): void;
  resume(): void;
  /** Runs one command. */
  command(...words: readonly string[]): Promise<unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

export { redisIsInstalled } from "../../../commands/stack/redis-process.ts";

/** Skips the test where Redis is not installed; fails it there when REQUIRE_SERVICES=1 says that it has to be. */
export function requireRedis(context: TestContext): void {
  if (redisIsInstalled()) return;
  if (process.env.REQUIRE_SERVICES === "1") throw new Error(`${redisProgram} is not installed`);
  context.skip(`${redisProgram} is not installed`);
}

/** Starts a Redis on a free port of the loopback interface. It ends when this process does, even if this is killed. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let running = await startProcess(port);
  return {
    url,
    kill: () => running.end(),
    async restart() {
      running = await startProcess(port);
    },
    pause: () => running.signal("SIGSTOP"),
    resume: () => running.signal("SIGCONT"),
    command: (...words) => runCommand(url, words),
    [Symbol.asyncDispose]: () => running.end(),
  };
}

interface RedisProcess {
  signal(signal: NodeJS.Signals): void;
  end(): Promise<void>;
}

/** Says the server's process id, and kills the server when the other end of its stdin is gone. */
const keeper = '"$@" </dev/null >/dev/null 2>&1 & echo $!; read -r _; kill -9 $!; wait';

async function startProcess(port: number): Promise<RedisProcess> {
  const shell = spawn("/bin/sh", ["-c", keeper, "sh", redisProgram, ...redisArguments(port)], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  const ended = once(shell, "close");
  const [line] = (await once(shell.stdout, "data")) as [Buffer];
  await waitUntil(() => runCommand(`redis://127.0.0.1:${port}`, ["PING"]));
  return {
    signal: (signal) => void process.kill(Number(line), signal),
    async end() {
      shell.stdin.end();
      await ended;
    },
  };
}

async function runCommand(url: string, words: readonly string[]): Promise<unknown> {
  const client = createClient({ url, socket: { reconnectStrategy: false } });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.sendCommand([...words]);
  } finally {
    client.destroy();
  }
}
