import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { medianOf, quantileOf, runAtRate, runLoad, slopeOf } from "./load.ts";

describe("the median", () => {
  test.for([
    [[3], 3],
    [[9, 1, 5], 5],
    [[4, 1, 3, 2], 2.5],
    [[], Number.NaN],
  ] as const)("of %j is %d", ([values, median]) => {
    expect(medianOf(values)).toBe(median);
  });
});

test("a quantile is the value below which that share lies", () => {
  const ascending = Array.from({ length: 100 }, (_, index) => index);
  expect(quantileOf(ascending, 0.5)).toBe(50);
  expect(quantileOf(ascending, 0.99)).toBe(99);
  expect(quantileOf(ascending, 1)).toBe(99);
});

test("a slope is what all points have in common", () => {
  expect(slopeOf([2, 4, 6].map((y, x) => ({ x, y })))).toBe(2);
  expect(slopeOf([5, 7, 5, 7, 5].map((y, x) => ({ x, y })))).toBe(0);
  expect(slopeOf([{ x: 1, y: 1 }])).toBeNaN();
});

/** Answers each path with as many bytes as it says. */
async function startServer() {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url ?? "");
    request.resume();
    response.end("x".repeat(Number(request.url?.slice(1))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const port = (server.address() as AddressInfo).port;
  const exchange = (bytes: number) => ({
    url: `http://127.0.0.1:${port}/${bytes}`,
    apiKey: "k",
    body: "{}",
    isWhole: (length: number) => length === 5 || length === 6,
  });
  return { seen, exchange };
}

test("a load sends as many requests as it should, the exchanges in turn", async () => {
  const { seen, exchange } = await startServer();
  const { firstByteMs } = await runLoad([exchange(5), exchange(6)], { requests: 5, concurrency: 1 });
  expect(seen).toEqual(["/5", "/6", "/5", "/6", "/5"]);
  expect(firstByteMs).toHaveLength(5);
});

test("a load of a rate sends what is due until its end", async () => {
  const { seen, exchange } = await startServer();
  const { firstByteMs } = await runAtRate([exchange(5)], { perSecond: 200, seconds: 0.5 });
  expect(seen.length).toBeGreaterThan(10);
  expect(seen.length).toBeLessThanOrEqual(100);
  expect(firstByteMs).toHaveLength(seen.length);
});

test("a load ends with the first answer that is not whole", async () => {
  const { exchange } = await startServer();
  await expect(runLoad([exchange(4)], { requests: 2, concurrency: 1 })).rejects.toThrow("with 4 bytes");
  await expect(runAtRate([exchange(4)], { perSecond: 100, seconds: 60 })).rejects.toThrow("with 4 bytes");
});
