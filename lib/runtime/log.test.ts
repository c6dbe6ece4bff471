import { describe, expect, test } from "vitest";
import { createLog } from "./log.ts";

function capture(level = "info") {
  const lines: string[] = [];
  const log = createLog({ name: "sample", level, destination: { write: (line) => void lines.push(line) } });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? "") as Record<string, unknown> };
}

describe("the log", () => {
  test("writes one JSON object a line, with process, level and time", () => {
    const { log, lines, last } = capture();
    log.info({ port: 1 }, "listening");
    expect(lines).toHaveLength(1);
    expect(last()).toMatchObject({ level: "info", process: "sample", port: 1, msg: "listening" });
    expect(last().time).toMatch(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/);
  });

  test.for(["authorization", "apiKey", "secret", "token", "password", "input", "prompt", "headers", "body"])(
    "cuts %s out, at the top and one level below",
    (field) => {
      const { log, lines, last } = capture();
      const context = log.child({ [field]: "hunter2" });
      context.warn({ [field]: "hunter2", request: { [field]: "hunter2", id: 7 } }, "refused");
      expect(lines.join("")).not.toContain("hunter2");
      expect(last()).toMatchObject({ [field]: "[redacted]", request: { [field]: "[redacted]", id: 7 } });
    },
  );

  test("writes an error with its type, message, stack and cause, without what hangs on it", () => {
    const { log, lines, last } = capture();
    const baggage = { code: "57P01", body: "hunter2", client: { secretKey: "hunter2" } };
    log.error(
      { err: Object.assign(new TypeError("outer", { cause: new Error("inner") }), baggage) },
      "failed",
    );
    expect(last().err).toEqual({
      type: "TypeError",
      code: "57P01",
      message: "outer: inner",
      stack: expect.any(String),
    });
    expect(String((last().err as { stack: string }).stack)).toMatch(
      /log\.test\.ts.*caused by: Error: inner/s,
    );
    expect(lines.join("")).not.toContain("hunter2");
  });

  test("is quiet below its level", () => {
    const { log, lines } = capture("warn");
    log.info("not this");
    log.warn("but this");
    expect(lines).toHaveLength(1);
  });
});
