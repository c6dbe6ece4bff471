import type { Reporter, TestModule } from "vitest/node";

/** Prints one line on stdout for each skipped test, with its reason, once all have run. */
export class SkipReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const result = test.result();
        const reason = result.state === "skipped" ? result.note : undefined;
        process.stdout.write(
          `skipped: ${module.relativeModuleId} > ${test.fullName}: ${reason ?? "no reason given"}\n`,
        );
      }
    }
  }
}
