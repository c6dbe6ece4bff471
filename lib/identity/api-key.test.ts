import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { generateApiKey, hashApiKey, isApiKey, isKeyHash, maskApiKey } from "./api-key.ts";

test("a key is sk- and 256 random bits, each time others", () => {
  const keys = new Set(Array.from({ length: 100 }, () => generateApiKey()));
  expect(keys.size).toBe(100);
  for (const key of keys) {
    expect(Buffer.from(key.slice(3), "base64url")).toHaveLength(32);
    expect(isApiKey(key)).toBe(true);
  }
  expect(generateApiKey((size) => Buffer.alloc(size, 0xff))).toBe(`sk-${"_".repeat(42)}8`);
});

test("a key is named by its SHA-256 and shown by 7 of its characters", () => {
  const key = generateApiKey();
  expect(hashApiKey(key)).toBe(createHash("sha256").update(key).digest("hex"));
  expect(isKeyHash(hashApiKey(key))).toBe(true);
  expect(maskApiKey("sk-abcdefghijklmnopqrstuvwxyz0123456789wxyz")).toBe("sk-abc…wxyz");
});

test.for([
  "",
  "sk-",
  "sk-short",
  `pk-${"a".repeat(43)}`,
  `sk-${"a".repeat(129)}`,
  `sk-${"a".repeat(42)}=`,
  `sk-${"a".repeat(43)}\n`,
  ` sk-${"a".repeat(43)}`,
])("%j has not the form of a key", (text) => {
  expect(isApiKey(text)).toBe(false);
});
