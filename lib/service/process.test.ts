import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Child, startChild } from "../../test/support/processes/child.ts";
import { startSpeechServer } from "../../test/support/services/speech-server.ts";
import { ConfigError } from "../runtime/config.ts";
import { StartError } from "../runtime/start-error.ts";
import { startFailure } from "./process.ts";

const script = fileURLToPath(new URL("__fixtures__/sample-process.ts", import.meta.url));

function start(env: Record<string, string> = {}): Child {
  const child = startChild(script, { env: { PORT: "0", DRAIN_DELAY_MS: "0", ...env } });
  onTestFinished(() => child.kill());
  return child;
}

/** The messages that a process has logged, and its other lines as they are. */
function messagesOf(child: Child): string[] {
  return child.lines.map((line) => (line.startsWith("{") ? (JSON.parse(line) as { msg: string }).msg : line));
}

describe("a process", () => {
  test.for(["SIGTERM", "SIGINT"] as const)("stops on %s and exits 0 once it has", async (signal) => {
    const child = start();
    await child.listeningPort("rpc");
    process.kill(child.pid, signal);
    expect(await child.exited).toBe(0);
    // The logger writes in the background: its last lines may come out of order.
    expect(messagesOf(child).sort()).toEqual(["listening", "stopped", "stopping"]);
  });

  test("exits at once on a second signal", async () => {
    const child = start({ FAULT: "never-stops" });
    await child.listeningPort("rpc");
    process.kill(child.pid, "SIGTERM");
    await child.line((line) => line.includes("stopping"));
    process.kill(child.pid, "SIGTERM");
    expect(await child.exited).toBe(130);
  });

  test("exits 0 on a signal before it has started", async () => {
    const child = start({ FAULT: "never-starts" });
    await child.listeningPort("rpc");
    expect(await child.stop()).toBe(0);
  });

  test("stops what has started though it was told to stop before", async () => {
    const child = start({ FAULT: "starts-late" });
    await child.listeningPort("rpc");
    expect(await child.stop()).toBe(0);
    expect(messagesOf(child)).toContain("stopped");
  });

  test("exits 1 with a log line when stopping fails", async () => {
    const child = start({ FAULT: "at-stop" });
    await child.listeningPort("rpc");
    expect(await child.stop()).toBe(1);
    expect(child.lines.join("\n")).toContain("part that does not stop");
  });

  test.for(["uncaught", "unhandled"])("exits 1 with a log line when something is %s", async (fault) => {
    const child = start({ FAULT: fault });
    await child.listeningPort("rpc");
    process.kill(child.pid, "SIGUSR2");
    expect(await child.exited).toBe(1);
    expect(JSON.parse(child.lines.at(-1) ?? "")).toMatchObject({ level: "fatal", msg: "uncaught exception" });
  });
});

describe("a process that can't start", () => {
  test("says in one line which variables are wrong", async () => {
    const child = start({ PORT: "http", LOG_LEVEL: "loud" });
    expect(await child.exited).toBe(1);
    expect(child.lines).toHaveLength(1);
    expect(child.lines[0]).toMatch(/^error: configuration: .*PORT must be .* from 0 to 65535/);
    expect(child.lines[0]).toContain("LOG_LEVEL must be one of trace, debug,");
  });

  test("says in one line that its port is in use", async () => {
    await using server = await startSpeechServer();
    const child = start({ PORT: String(server.port) });
    expect(await child.exited).toBe(1);
    expect(child.lines).toEqual([`error: PORT ${server.port} on 127.0.0.1 is in use; set another one`]);
  });

  test("shows where a bug comes from", async () => {
    const child = start({ FAULT: "at-start" });
    expect(await child.exited).toBe(1);
    expect(child.lines[0]).toBe("error: Error: broken part");
    expect(child.lines.join("\n")).toContain("sample-process.ts");
  });
});

describe("the reason that an operator reads", () => {
  const system = (code: string, more: object) => Object.assign(new Error("x"), { code, ...more });

  test.for([
    [new ConfigError("configuration: PORT is required"), "error: configuration: PORT is required"],
    [new StartError("no database"), "error: no database"],
    [system("EACCES", { port: 80, address: "::" }), "error: port 80 on :: may not be opened by this user"],
    [
      system("EADDRNOTAVAIL", { address: "192.0.2.1" }),
      "error: 192.0.2.1 is no address of this machine; set another one",
    ],
    [system("EROFS", { path: "/data/x" }), "error: /data/x is not writable"],
    ["thrown text", "error: thrown text"],
    [undefined, "error: undefined"],
  ] as const)("%s", ([thrown, line]) => {
    expect(startFailure(thrown)).toBe(line);
  });
});
