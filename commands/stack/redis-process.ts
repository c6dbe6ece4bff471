import { spawnSync } from "node:child_process";

/** The program of a Redis server. */
export const redisProgram = "redis-server";

/** Whether a Redis can be started here. */
export function redisIsInstalled(): boolean {
  return spawnSync(redisProgram, ["--version"]).status === 0;
}

/** Its arguments for a server on the loopback interface that keeps nothing on disk. */
export function redisArguments(port: number): string[] {
  return ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
}
