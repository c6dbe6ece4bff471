import { expect, test } from "vitest";
import { withLimit } from "./with-limit.ts";

const never = new Promise<never>(() => undefined);

test("work that ends in time gives what it gives", async () => {
  const { signal } = new AbortController();
  const limit = { timeoutMs: 1000, signal };
  expect(await withLimit(Promise.resolve(1), limit)).toBe(1);
  await expect(withLimit(Promise.reject(new Error("own")), limit)).rejects.toThrow("own");
  expect(await withLimit(Promise.resolve(2), {})).toBe(2);
});

test("work that takes too long is given up", async () => {
  const given = new AbortController();
  const pending = withLimit(never, { signal: given.signal });
  given.abort(new Error("enough"));
  await expect(pending).rejects.toThrow("enough");
  await expect(withLimit(never, { signal: given.signal })).rejects.toThrow("enough");
  await expect(withLimit(never, { timeoutMs: 1 })).rejects.toMatchObject({ name: "TimeoutError" });
});
