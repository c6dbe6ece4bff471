import { expect, test } from "vitest";
import { ConfigError } from "../runtime/config.ts";
import { readMasterKeys } from "./master-keys.ts";

const key = Buffer.alloc(32, 255).toString("base64");
const other = Buffer.alloc(32, 1).toString("base64");

test("are read in their order, blanks around them dropped", () => {
  const keys = readMasterKeys(` 2026_b:${key} , 2026-a:${other} `);
  expect(keys.map(({ id }) => id)).toEqual(["2026_b", "2026-a"]);
  expect(keys[0].key.export()).toEqual(Buffer.alloc(32, 255));
  expect(keys[0].key.symmetricKeySize).toBe(32);
});

test.for([
  ["nothing", ""],
  ["no id", key],
  ["an empty id", `:${key}`],
  ["a long id", `${"a".repeat(33)}:${key}`],
  ["an id with other characters", `a.b:${key}`],
  ["an empty key", "a:"],
  ["a short key", `a:${Buffer.alloc(31, 255).toString("base64")}`],
  ["a long key", `a:${Buffer.alloc(33, 255).toString("base64")}`],
  ["hex", `a:${Buffer.alloc(32, 255).toString("hex")}`],
  ["base64url", `a:${key.replaceAll("/", "_")}`],
  ["no padding", `a:${key.slice(0, -1)}`],
  ["stray last bits", `a:${key.slice(0, -2)}9=`],
  ["an id twice", `a:${key},a:${other}`],
  ["a comma too many", `a:${key},`],
  ["a colon too many", `a:${key}:b`],
  ["two keys of which one is malformed", `a:${key},b`],
] as const)("%s is refused in one line without a word of it", ([, text]) => {
  const read = () => readMasterKeys(text);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(/^configuration: MASTER_KEYS must be id:key\S* .+$/);
  expect(read).not.toThrow(key.slice(0, 8));
});
