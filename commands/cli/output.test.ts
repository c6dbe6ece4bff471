import { beforeEach, expect, test } from "vitest";
import { HeardTerminal } from "../../test/support/processes/command-line.ts";
import { dollars, type Output, print, printable, usd } from "./output.ts";

let terminal: HeardTerminal;

beforeEach(() => {
  terminal = new HeardTerminal();
});

const things: Output = {
  columns: ["id", "made_at", "balance_usd", "is_on", "words", "count"],
  rows: [
    { id: "a", made_at: new Date(0), balance_usd: usd(-1n), is_on: true, words: ["x", "y"], count: 3n },
    { id: "long one", balance_usd: usd(12_500_000_000n), is_on: false, words: [] },
  ],
};

test("a table has a head, and columns as wide as what stands in them", () => {
  print(things, false, terminal);
  expect(terminal.heard.split("\n")).toEqual([
    "ID        MADE AT                   BALANCE        IS ON  WORDS  COUNT",
    "a         1970-01-01T00:00:00.000Z  -$0.000000001  yes    x, y   3",
    "long one  -                         $12.50         no     -      -",
    "",
  ]);
});

test("JSON has every field of every row, amounts exact, nothing as null", () => {
  print(things, true, terminal);
  expect(JSON.parse(terminal.heard)).toEqual([
    {
      id: "a",
      made_at: "1970-01-01T00:00:00.000Z",
      balance_usd: "-0.000000001",
      is_on: true,
      words: ["x", "y"],
      count: 3,
    },
    { id: "long one", made_at: null, balance_usd: "12.5", is_on: false, words: [], count: null },
  ]);
});

test("an empty table is its head, an empty list is JSON", () => {
  print({ columns: ["id"], rows: [] }, false, terminal);
  print({ columns: ["id"], rows: [] }, true, terminal);
  expect(terminal.heard).toBe("ID\n[]\n");
});

test("a secret stands alone on stdout, and what is said of it on stderr", () => {
  print({ secret: "sk-x", fields: { hash: "h" }, notes: ["shown once"] }, false, terminal);
  expect([terminal.heard, terminal.errors]).toEqual(["sk-x\n", "shown once\n"]);
});

const hostile = "a\u001b[2J\u009b31m\u202egnp.exe\u200b\n\u2028\u{e0041}b";

test.for([false, true])("nothing that a terminal acts on or hides comes through, as JSON: %s", (asJson) => {
  const notes = [hostile];
  print({ columns: ["name"], rows: [{ name: hostile }], notes }, asJson, terminal);
  print({ fields: { name: hostile, words: [hostile] }, notes }, asJson, terminal);
  print({ lines: [hostile], data: { name: hostile }, notes }, asJson, terminal);
  expect(`${terminal.heard}${terminal.errors}`.replaceAll("\n", "")).not.toMatch(/[\p{C}\u2028\u2029]/u);
  if (asJson) expect(terminal.heard).toContain("\\u001b");
  else
    expect(terminal.heard).toContain(
      "a\\u{1b}[2J\\u{9b}31m\\u{202e}gnp.exe\\u{200b}\\u{a}\\u{2028}\\u{e0041}b",
    );
});

test("JSON reads back as what it was", () => {
  print({ fields: { name: hostile } }, true, terminal);
  expect(JSON.parse(terminal.heard)).toEqual({ name: hostile });
});

test("other scripts come through", () => {
  expect(printable("Zoë 株式会社 🙂")).toBe("Zoë 株式会社 🙂");
});

test.for([
  [0n, "$0.00"],
  [2_500_000_000n, "$2.50"],
  [-90_000n, "-$0.00009"],
  [1_234_567_000_000_001n, "$1234567.000000001"],
] as const)("%s nano-USD are %s", ([amount, text]) => {
  expect(dollars(amount)).toBe(text);
});
