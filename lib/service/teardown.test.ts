import { expect, test } from "vitest";
import { createLog } from "../runtime/log.ts";
import { Teardown } from "./teardown.ts";

function newTeardown() {
  const logged: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
  return { teardown: new Teardown(createLog({ name: "test", level: "trace", destination })), logged };
}

test("what was started last is ended first, one after the other", async () => {
  const { teardown } = newTeardown();
  const events: string[] = [];
  for (const part of ["database", "services", "listener"]) {
    teardown.add(async () => {
      events.push(`${part} ends`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${part} ended`);
    });
  }
  expect(await teardown.run()).toBe(true);
  expect(events).toEqual([
    "listener ends",
    "listener ended",
    "services ends",
    "services ended",
    "database ends",
    "database ended",
  ]);
});

test("an end that fails is logged, and the others still follow", async () => {
  const { teardown, logged } = newTeardown();
  const ended: string[] = [];
  teardown.add(async () => void ended.push("database"));
  teardown.add(() => Promise.reject(new Error("the drain failed")));
  expect(await teardown.run()).toBe(false);
  expect(ended).toEqual(["database"]);
  expect(logged).toMatchObject([
    { level: "error", msg: "a part could not be ended", err: { message: "the drain failed" } },
  ]);
});

test("nothing is ended twice, and what is added later is ended by the next run", async () => {
  const { teardown } = newTeardown();
  const ended: string[] = [];
  teardown.add(async () => void ended.push("first"));
  await teardown.run();
  await teardown.run();
  teardown.add(async () => void ended.push("second"));
  await teardown.run();
  expect(ended).toEqual(["first", "second"]);
});

test("a run that comes while another is under way waits for it: nothing is ended before what needs it", async () => {
  const { teardown } = newTeardown();
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
  const ended: string[] = [];
  teardown.add(async () => void ended.push("database"));
  teardown.add(async () => {
    await drained;
    ended.push("listener");
  });
  const runs = [teardown.run(), teardown.run()].map((run) => run.then(() => [...ended]));
  await new Promise((resolve) => setImmediate(resolve));
  expect(ended).toEqual([]);
  drain();
  expect(await Promise.all(runs)).toEqual([
    ["listener", "database"],
    ["listener", "database"],
  ]);
});
