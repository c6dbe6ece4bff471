import { expect, test } from "vitest";
import { drainBody, readBodyText } from "./read-body.ts";

/** An answer whose body can be watched; a read that waits ends when it is cancelled. */
function answerOf(chunks: readonly string[], end: "whole" | "broken" | "silent") {
  const cancelled = Promise.withResolvers<never>();
  cancelled.promise.catch(() => undefined);
  const state = { cancelled: false, left: false };
  async function* body() {
    try {
      for (const chunk of chunks) yield Buffer.from(chunk);
      if (end === "broken") throw new Error("broken");
      if (end === "silent") await cancelled.promise;
    } finally {
      state.left = true;
    }
  }
  const cancel = () => {
    state.cancelled = true;
    cancelled.reject(new Error("cancelled"));
  };
  return { body: body(), cancel, state };
}

const limits = { maxBytes: 10, timeoutMs: 10_000 };

test("reads a whole body as UTF-8", async () => {
  const answer = answerOf(["hä", "lo"], "whole");
  expect(await readBodyText(answer, limits)).toBe("hälo");
  expect(answer.state.cancelled).toBe(false);
});

test("reads no more than the limit and leaves the rest", async () => {
  const answer = answerOf(["012345", "678901234", "never"], "silent");
  expect(await readBodyText(answer, limits)).toBe("0123456789");
  expect(answer.state.left).toBe(true);
});

test("keeps what came before a body broke or fell silent", async () => {
  expect(await readBodyText(answerOf(["half"], "broken"), limits)).toBe("half");
  const silent = answerOf(["half"], "silent");
  expect(await readBodyText(silent, { ...limits, timeoutMs: 20 })).toBe("half");
  expect(silent.state.cancelled).toBe(true);
});

test("drains to the end, through failure, and gives up on silence", async () => {
  for (const end of ["whole", "broken"] as const) {
    const answer = answerOf(["a", "b"], end);
    await drainBody(answer.body, answer.cancel, 10_000);
    expect(answer.state).toEqual({ cancelled: false, left: true });
  }
  const silent = answerOf(["a"], "silent");
  await drainBody(silent.body, silent.cancel, 20);
  expect(silent.state).toEqual({ cancelled: true, left: true });
});
