import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { FrameHandout } from "./frame-handout.ts";

function start(caller = new AbortController()) {
  const handout = new FrameHandout<string>(caller.signal, () => new Error("you left"));
  return { caller, handout };
}

/** Hands these out, then ends; records what it has done. */
function giving({ handout }: ReturnType<typeof start>, frames: readonly string[]) {
  const done: string[] = [];
  const ended = (async () => {
    for (const frame of frames) {
      await handout.give(frame);
      done.push(frame);
    }
    handout.end();
  })();
  return { done, ended };
}

const turns = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
};

describe("a handout", () => {
  test("gives all frames in order, and its end", async () => {
    const scene = start();
    giving(scene, ["a", "b", "c"]);
    expect(await Array.fromAsync(scene.handout)).toEqual(["a", "b", "c"]);
    expect(await scene.handout.next()).toEqual({ done: true, value: undefined });
    expect(getEventListeners(scene.caller.signal, "abort")).toEqual([]);
  });

  test("has handed a frame out once the next is asked for, and not before", async () => {
    const scene = start();
    const { done } = giving(scene, ["a", "b"]);
    await turns();
    expect(done).toEqual([]);
    expect(await scene.handout.next()).toMatchObject({ value: "a" });
    await turns();
    expect(done).toEqual([]);
    expect(await scene.handout.next()).toMatchObject({ value: "b" });
    expect(done).toEqual(["a"]);
  });

  test("reports a failure once, also where nobody waits yet, and then its end", async () => {
    const { handout } = start();
    handout.fail(new Error("broken"));
    await expect(handout.next()).rejects.toThrow("broken");
    expect(await handout.next()).toMatchObject({ done: true });
  });

  test("reports a failure to whoever waits", async () => {
    const { handout } = start();
    const next = handout.next();
    handout.fail(new Error("broken"));
    await expect(next).rejects.toThrow("broken");
  });
});

describe("a caller who leaves", () => {
  test.for(["aborts", "returns"] as const)(
    "lets the work go on alone, its frames dropped: %s",
    async (how) => {
      const scene = start();
      const { handout, caller } = scene;
      const { done, ended } = giving(scene, ["a", "b", "c"]);
      await handout.next();
      if (how === "aborts") caller.abort();
      else await handout.return();
      await ended;
      expect([done, handout.left.aborted]).toEqual([["a", "b", "c"], true]);
      expect(getEventListeners(caller.signal, "abort")).toEqual([]);
    },
  );

  test("learns it while a frame is awaited, or with the next that is asked for", async () => {
    const one = start();
    const next = one.handout.next();
    one.caller.abort(new Error("the reason"));
    await expect(next).rejects.toThrow("you left");
    expect(one.handout.left.reason).toEqual(new Error("the reason"));
    const other = start();
    other.caller.abort();
    await expect(other.handout.next()).rejects.toThrow("you left");
  });

  test("before it began has left", async () => {
    const caller = new AbortController();
    caller.abort();
    const scene = start(caller);
    const { done, ended } = giving(scene, ["a"]);
    await ended;
    expect([done, scene.handout.left.aborted]).toEqual([["a"], true]);
  });

  test("after the end has not left", async () => {
    const scene = start();
    giving(scene, []);
    expect(await scene.handout.next()).toMatchObject({ done: true });
    scene.caller.abort();
    await scene.handout.return();
    expect(scene.handout.left.aborted).toBe(false);
  });

  test("hears nothing of what the work fails with afterwards", async () => {
    const scene = start();
    scene.caller.abort();
    scene.handout.fail(new Error("broken"));
    await expect(scene.handout.next()).rejects.toThrow("you left");
    expect(await scene.handout.next()).toMatchObject({ done: true });
  });
});
