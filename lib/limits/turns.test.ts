import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("so many run at once, the others in their order, failed ones included", async () => {
  const turns = new Turns(2);
  const begun: number[] = [];
  const work = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const all = work.map(({ promise }, index) =>
    turns.take(() => {
      begun.push(index);
      return promise;
    }),
  );
  expect(begun).toEqual([0, 1]);
  work[1]?.reject(new Error("failed"));
  await expect(all[1]).rejects.toThrow("failed");
  expect(begun).toEqual([0, 1, 2]);
  for (const [index, { resolve }] of work.entries()) resolve(index);
  expect(await Promise.allSettled(all)).toMatchObject(
    [0, 1, 2, 3, 4].map((value) => (value === 1 ? {} : { value })),
  );
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});
