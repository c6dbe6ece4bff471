import { describe, expect, test } from "vitest";
import { ratiosOf, worsened } from "./baseline.ts";
import type { Figures, Round, TargetFigures } from "./measure.ts";
import { printed, rowsOf } from "./rows.ts";

function round(cpuMs: number, p50Ms = 1, storesMs = 0): Round {
  return { cpuMs, cpuMsOfEach: {}, storesMs, perSecond: 100, p50Ms, p99Ms: p50Ms };
}

function target(
  rounds: TargetFigures["rounds"],
  mib: readonly [number, number],
  idle: readonly number[],
): TargetFigures {
  const costs = idle.map((cpuMs, index) => {
    return { name: `${index}`, isOurs: idle.length === 1 || index < idle.length - 1, cpuMs, wakeUps: 0 };
  });
  return { rounds, idle: costs, idleMib: mib[0], peakMib: mib[1] };
}

const others = { paced: [round(1)], image: [round(1)] };
const figures: Figures = {
  plain: target({ ...others, burst: [round(1), round(2), round(1)], one: [round(1, 2)] }, [50, 100], [0]),
  processes: target(
    { ...others, burst: [round(10, 1, 3), round(10, 1, 3), round(30, 1, 3)], one: [round(20, 11)] },
    [500, 1000],
    [20, 33, 8],
  ),
  standalone: target(
    { ...others, burst: [round(4, 1, 1), round(8, 1, 1), round(4, 1, 1)], one: [round(7, 6)] },
    [150, 300],
    [39, 17],
  ),
  commitMs: [1],
};

describe("the table", () => {
  const rows = rowsOf(figures);
  const ratios = ratiosOf(rows);

  test("has the median of what each round was of the plain proxy beside it", () => {
    // 10, 5 and 30 times; the medians' quotient would be the same by chance with the last round alone.
    expect(ratios["burst CPU"]).toEqual({ processes: 10, standalone: 4 });
    expect(ratios["stores CPU"]).toEqual({ processes: 3, standalone: 1 });
  });

  test("takes the proxy's time and the commit's off the first byte", () => {
    const first = rows.flatMap(({ parts }) => parts).find(({ key }) => key === "first byte");
    expect(first?.values.processes).toEqual({ figure: 8, ratio: 4 });
    expect(first?.values.standalone).toEqual({ figure: 3, ratio: 1.5 });
  });

  test("tells the least and the most of idle processes, and compares the most", () => {
    expect(ratios["idle CPU"]).toEqual({ processes: 33, standalone: 39 });
    expect(ratios["idle CPU of PostgreSQL"]).toEqual({ standalone: 17 });
    expect(printed(rows)).toMatch(/idle CPU.* 20–33 +≤3 +39 \+ 17 +≤5 \+ 2$/m);
  });

  test("shows figures, ratios and aims in columns", () => {
    expect(printed(rows)).toMatch(/^speech burst.* 1\.0 +10 \(×10\) +×8 +4\.0 \(×4\.0\) +×4$/m);
    expect(printed(rows)).toMatch(/^memory.* 50 \/ 100 +500 \(×10\) \/ 1000 \(×10\) +420 \/ 650 /m);
  });

  test("has no row of what was not measured, and no peak of some loads alone", () => {
    const { image: _, ...some } = figures.plain.rounds;
    const without = rowsOf({ ...figures, plain: { ...figures.plain, rounds: some } });
    expect(printed(without)).not.toContain("image");
    expect(printed(without)).toMatch(/^memory.* 50 +500 \(×10\) +420 +150 \(×3.0\) +180$/m);
  });
});

describe("the comparison", () => {
  const rows = rowsOf(figures);
  const ratios = ratiosOf(rows);
  const against = (key: string, before: number) =>
    worsened(rows, { ratios: { ...ratios, [key]: { ...ratios[key], processes: before } } });

  test("finds nothing in the same figures", () => {
    expect(worsened(rows, { ratios })).toEqual([]);
  });

  test("finds a ratio that is worse by more than half, and not one of just half", () => {
    expect(against("burst CPU", 10 / 1.51)).toEqual([
      "burst CPU, processes: ×10, and ×6.6 in the checked-in result",
    ]);
    expect(against("burst CPU", 10 / 1.5)).toEqual([]);
    expect(against("peakMib", 6)).toHaveLength(1);
  });

  test("leaves a first byte alone that is later by less than can be told", () => {
    // The proxy answers after 2 ms, so ×0.5 is a millisecond.
    expect(against("first byte", 2.5)).toHaveLength(1);
    const small = { ...figures, processes: { ...figures.processes, rounds: { one: [round(20, 3.9)] } } };
    const smallRows = rowsOf(small).filter(({ label }) => label.startsWith("first"));
    expect(ratiosOf(smallRows)["first byte"]?.processes).toBe(0.45);
    expect(worsened(smallRows, { ratios: { "first byte": { processes: 0.1, standalone: 1.5 } } })).toEqual(
      [],
    );
  });

  test("finds what the checked-in result does not say", () => {
    const { "burst CPU": _, ...others } = ratios;
    expect(worsened(rows, { ratios: others })).toHaveLength(2);
  });
});
