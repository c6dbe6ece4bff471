import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { createTestDatabase } from "../support/postgres/database.ts";
import { temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { inheritedEnvironment } from "../support/processes/child.ts";
import { bytesOf, openAiEnv, speak, standaloneEnv } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const logLine = /^\d\d:\d\d:\d\d (info |warn |error) /;
const streamBytes = 24_000;

/** Runs standalone as on a terminal, by the program `script` of util-linux. */
function startOnTerminal({ skip }: TestContext, env: Record<string, string>) {
  skip(!spawnSync("script", ["--version"]).stdout?.includes("util-linux"), "no script of util-linux here");
  const command = `exec "${process.execPath}" standalone/main.ts`;
  const child = spawn("script", ["-qefc", command, "/dev/null"], {
    env: { ...inheritedEnvironment(), TERM: "xterm-256color", SHELL: "/bin/sh", ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  return {
    get raw() {
      return output;
    },
    get lines() {
      return stripVTControlCharacters(output).split(/\r?\n/);
    },
    press: (key: string) => void child.stdin.write(key),
    exited: once(child, "exit").then(([code]) => code as number | null),
  };
}

test("on a terminal the log is for people, the greeting stands alone and can be pasted, and Ctrl-C says what it waits for", async (context) => {
  const [database, upstream] = [await createTestDatabase(), await startOpenAiUpstream()];
  onTestFinished(async () => {
    await upstream.close();
    await database.drop();
  });
  const folder = await temporaryDirectory();
  const env = standaloneEnv(folder, { ...openAiEnv(upstream), DATABASE_URL: database.url });
  const terminal = startOnTerminal(context, env);
  await waitUntil(() => terminal.lines.some((line) => line.startsWith("Play hello.mp3")));
  const { lines, raw } = terminal;
  const from = lines.findIndex((line) => line.startsWith("Media Gateway serves "));
  const to = lines.findIndex((line) => line.startsWith("Play hello.mp3"));
  expect(lines.slice(0, from).filter((line) => line !== "" && !logLine.test(line))).toEqual([]);
  expect(lines.slice(0, from).join("\n")).toMatch(/ info {2}listening what=rest host=\S+ port=\d+\n$/);
  expect(lines.slice(from, to).filter((line) => logLine.test(line))).toEqual([]);
  expect(raw).toContain("\u001b[");

  const pasted = lines.filter((line) => /^ {2}(export|curl) /.test(line)).map((line) => line.trim());
  expect(pasted.map((line) => line.split("=")[0])).toEqual([
    "export MEDIA_URL",
    "export MEDIA_KEY",
    expect.any(String),
  ]);
  context.skip(spawnSync("curl", ["--version"]).status !== 0, "no curl here");
  expect(spawnSync("sh", ["-ec", pasted.join("\n")], { cwd: folder }).status).toBe(0);
  expect((await stat(join(folder, "hello.mp3"))).size).toBeGreaterThan(1000);

  const [, baseUrl = ""] = /export MEDIA_URL=(\S+)\/api\/v1/.exec(pasted.join("\n")) ?? [];
  const [, key = ""] = /export MEDIA_KEY=(\S+)/.exec(pasted.join("\n")) ?? [];
  const input = `[[audio=${streamBytes} chunk=1200 interval=200]]`;
  const body = { model: "openai/tts-1", voice: "alloy", response_format: "pcm", input };
  const response = await speak({ baseUrl }, key, body);
  terminal.press("\u0003");
  await waitUntil(() => terminal.lines.some((line) => /Ctrl-C again/.test(line)));
  const waiting = terminal.lines.find((line) => line.includes("Ctrl-C again")) ?? "";
  expect(waiting).toMatch(/ stopping when .* requestsInFlight=1 withinMs=10000$/);
  expect((await bytesOf(response)).length).toBe(streamBytes);
  expect(await terminal.exited).toBe(0);
});
