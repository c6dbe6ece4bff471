import { expect, test } from "vitest";
import { npmOpenRouter, pythonOpenRouter } from "../contract/openrouter-sdk.ts";
import { readSdkTable } from "../contract/openrouter-table.ts";
import { needPythonClients } from "../contract/python-client.ts";

const baseUrl = "http://127.0.0.1:1/api/v1";

// All of the Python package is imported, which takes its time.
const options = { timeout: 120_000 };

test("docs/compatibility.md tells of every method of the SDKs, and of no other", options, async (context) => {
  needPythonClients(context);
  const { rows, rowOf } = await readSdkTable();
  const python = pythonOpenRouter(baseUrl);
  const methods = [await npmOpenRouter(baseUrl).methods(), await python.methods()];
  await python.close();
  for (const names of methods) expect(names.length).toBeGreaterThan(100);
  expect(methods.flat().filter((method) => rowOf(method) === undefined)).toEqual([]);
  const used = new Set(methods.flat().map(rowOf));
  expect(rows.filter((row) => !used.has(row)).map(({ method }) => method)).toEqual([]);
  expect(new Set(rows.map(({ method }) => method)).size).toBe(rows.length);
  expect(rows.filter(({ works, isRefused }) => works === isRefused)).toEqual([]);
});
