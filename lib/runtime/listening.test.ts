import { expect, test } from "vitest";
import { logListening } from "./listening.ts";
import { createLog } from "./log.ts";

test("one line says what listens, and where", () => {
  const lines: string[] = [];
  const log = createLog({
    name: "speech",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  logListening(log, "rpc", "127.0.0.1", 40_123);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      process: "speech",
      level: "info",
      msg: "listening",
      what: "rpc",
      host: "127.0.0.1",
      port: 40_123,
    }),
  ]);
});
