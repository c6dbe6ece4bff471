import { expect, test } from "vitest";
import { silentLog } from "../runtime/log.ts";
import { StartError } from "../runtime/start-error.ts";
import { checkRetention } from "./check-retention.ts";

/** Answers one after the other, the last one for ever. */
function check(
  answers: readonly (number | Error)[],
  maxAgeMs: number,
  signal = new AbortController().signal,
) {
  const left = [...answers];
  const asked: string[] = [];
  const bus = {
    async retentionMs(topic: string) {
      asked.push(topic);
      const answer = (left.length > 1 ? left.shift() : left[0]) ?? 0;
      if (typeof answer === "number") return answer;
      throw answer;
    },
  };
  return { asked, done: checkRetention({ bus, topic: "some.topic", maxAgeMs, log: silentLog, signal }) };
}

test.for([
  [1000, 1000],
  [999, 1000],
])("messages kept %i ms are fine for copies known for %i ms", async ([retentionMs = 0, maxAgeMs = 0]) => {
  const { asked, done } = check([retentionMs], maxAgeMs);
  await done;
  expect(asked).toEqual(["some.topic"]);
});

test.for([
  [1001, "1001 ms"],
  [Number.POSITIVE_INFINITY, "for ever"],
] as const)("messages kept %d ms are refused for copies known for 1000 ms", async ([retentionMs, words]) => {
  const { done } = check([retentionMs], 1000);
  await expect(done).rejects.toBeInstanceOf(StartError);
  await expect(done).rejects.toThrow(`some.topic keeps messages ${words}`);
  await expect(done).rejects.toThrow("1000 ms only");
});

test("a bus that is away is asked again", async () => {
  const { asked, done } = check([new Error("away"), new Error("no such topic"), 5], 10);
  await done;
  expect(asked).toHaveLength(3);
});

test("waiting ends with the signal", async () => {
  const giveUp = new AbortController();
  const { done } = check([new Error("away")], 10, giveUp.signal);
  giveUp.abort(new Error("given up"));
  await expect(done).rejects.toThrow("given up");
});
