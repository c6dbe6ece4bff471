import { describe, expect, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { closeOnAbort } from "./close-on-abort.ts";

/** A generator of frames that waits for `gates`, with what became of it. */
function scene(gates: readonly Promise<string>[]) {
  const controller = new AbortController();
  const seen = { ended: false };
  async function* frames(): AsyncGenerator<string, void, undefined> {
    try {
      for (const gate of gates) yield await gate;
    } finally {
      seen.ended = true;
    }
  }
  return { controller, seen, frames: closeOnAbort(frames(), controller.signal) };
}

describe("frames whose consumer has gone", () => {
  test("are closed when the signal fires while nobody asks", async () => {
    const { controller, seen, frames } = scene([Promise.resolve("one"), Promise.resolve("two")]);
    expect(await frames.next()).toEqual({ done: false, value: "one" });
    controller.abort();
    await waitUntil(() => seen.ended);
    expect(await frames.next()).toEqual({ done: true, value: undefined });
  });

  test("are closed after the frame that was being made when the signal fired", async () => {
    const gate = Promise.withResolvers<string>();
    const { controller, seen, frames } = scene([gate.promise, Promise.resolve("two")]);
    const asked = frames.next();
    controller.abort();
    expect(seen.ended).toBe(false);
    gate.resolve("one");
    expect(await asked).toEqual({ done: false, value: "one" });
    await waitUntil(() => seen.ended);
  });

  test("end with the error of the frame that was being made", async () => {
    const gate = Promise.withResolvers<string>();
    const { controller, seen, frames } = scene([gate.promise]);
    const asked = frames.next();
    controller.abort();
    gate.reject(new Error("ended from this side"));
    await expect(asked).rejects.toThrow("ended from this side");
    expect(seen.ended).toBe(true);
  });
});

test("frames that are consumed to their end are as they were, and leave no listener", async () => {
  const { controller, frames } = scene([Promise.resolve("one"), Promise.resolve("two")]);
  expect(await Array.fromAsync(frames)).toEqual(["one", "two"]);
  controller.abort();
  expect(await frames.next()).toEqual({ done: true, value: undefined });
});

test("leaving early closes them", async () => {
  const { seen, frames } = scene([Promise.resolve("one"), Promise.resolve("two")]);
  for await (const frame of frames) {
    expect(frame).toBe("one");
    break;
  }
  expect(seen.ended).toBe(true);
});
