import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { consoleTypesFile, makeConsoleTypes } from "./console-types.ts";

test("the console's types are what `npm run gen` makes of the interface", async () => {
  expect(await readFile(consoleTypesFile, "utf8")).toBe(await makeConsoleTypes());
});
