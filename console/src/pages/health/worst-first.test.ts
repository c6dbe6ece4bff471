import { expect, test } from "vitest";
import { worstFirst } from "./worst-first.ts";

const seen = (name: string, breaker: "closed" | "open", attempts: number, error_share: number | null) => ({
  name,
  health: { breaker, attempts, error_share, last_error: null },
});

test("what needs a look first stands first", () => {
  const rows = [
    seen("unused", "closed", 0, null),
    seen("good", "closed", 3, 0),
    seen("failing", "closed", 3, 0.5),
    seen("resting", "open", 1, 0),
  ];
  expect(worstFirst(rows).map(({ name }) => name)).toEqual(["resting", "failing", "good", "unused"]);
});
