import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { createLog } from "./log.ts";
import { readableLine } from "./readable-line.ts";

/** What a terminal gets to see of what `write` logs. */
function shown(write: (log: ReturnType<typeof createLog>) => void, hasColors = false): string {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(readableLine(line, hasColors)) };
  write(createLog({ name: "sample", level: "info", destination }));
  return lines.join("");
}

describe("a line for people", () => {
  test("has the time, the level, the message and the fields", () => {
    const text = shown((log) =>
      log.info({ what: "rest", port: 8080, names: ["a b"], gone: null }, "listening"),
    );
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d info {2}listening what=rest port=8080 names=\["a b"\] gone=null\n$/,
    );
    expect(shown((log) => log.warn("late"))).toMatch(/^\d\d:\d\d:\d\d warn {2}late\n$/);
  });

  test("shows where an error comes from, with its causes, and no secret", () => {
    const err = new Error("outer", { cause: new Error("inner") });
    const text = shown((log) => log.error({ err, token: "hunter2" }, "failed"));
    expect(text).toMatch(
      / error failed token=\[redacted\]\n {2}Error: outer.* {6}at .*caused by: Error: inner/s,
    );
    expect(shown((log) => log.error({ err: "thrown text" }, "failed"))).toMatch(
      /failed\n {2}"thrown text"\n$/,
    );
    expect(text).not.toContain("hunter2");
  });

  test("lets nobody steer the terminal or forge a line", () => {
    const evil = "\u001b]0;title\u0007\u009b2J\n12:00:00 info  all is well\u202e";
    const text = shown((log) => log.warn({ model: evil, err: new Error(evil) }, evil));
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(text.split("\n").filter((line) => line.startsWith("12:00:00"))).toEqual([]);
  });

  test("says the same with colours", () => {
    const plain = shown((log) => log.fatal({ port: 1 }, "gone")).slice(8);
    const coloured = shown((log) => log.fatal({ port: 1 }, "gone"), true);
    expect(coloured).toContain("\u001b[");
    expect(stripVTControlCharacters(coloured).slice(8)).toBe(plain);
  });
});
