import type { Reporter, TestModule } from "vitest/node";

/** Prints one line on stdout for each reason that tests were skipped for, once all have run. */
export class SkipReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = new Map<string, string[]>();
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const result = test.result();
        const reason = (result.state === "skipped" ? result.note : undefined) ?? "no reason given";
        const others = names.get(reason) ?? [];
        names.set(reason, [...others, `${module.relativeModuleId} > ${test.fullName}`]);
      }
    }
    for (const [reason, [first = "", ...others]] of names) {
      const what = others.length === 0 ? first : `${others.length + 1} tests, ${first} the first`;
      process.stdout.write(`skipped: ${reason}: ${what}\n`);
    }
  }
}
