import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { needPythonClients, runPythonClient } from "./python-client.ts";

const requirements = new URL("./python/requirements.txt", import.meta.url);
const baseUrl = "http://127.0.0.1:1/api/v1";

test("a script of Python has the packages of the requirements, each pinned", async (context) => {
  needPythonClients(context);
  const lines = (await readFile(requirements, "utf8")).split("\n").filter((line) => /^\w/.test(line));
  const pinned = Object.fromEntries(lines.map((line) => line.split("==")));
  expect(Object.keys(pinned)).toEqual(expect.arrayContaining(["openrouter", "openai", "litellm"]));
  expect(await runPythonClient("packages.py", { baseUrl, names: Object.keys(pinned) })).toEqual(pinned);
});

test("a script of Python that fails says so with its trace back", async (context) => {
  needPythonClients(context);
  await expect(runPythonClient("packages.py", { baseUrl, names: ["no-such-package"] })).rejects.toThrow(
    /packages\.py failed:\nTraceback[\s\S]*PackageNotFoundError/,
  );
});
