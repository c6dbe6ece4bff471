import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { benchmarkTests, ordinaryTests, systemTests } from "./test/rules/test-projects.ts";
import { SkipReporter } from "./test/support/skip-reporter.ts";

export default defineConfig({
  test: {
    // Many tests wait for processes of their own: on two cores, two at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Far more than any takes: the machine may have other work.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    // The processes that tests start begin twice as fast with code that an earlier one has compiled.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/compiled", import.meta.url)) },
    setupFiles: ["test/support/processes/leave-nothing.ts"],
    reporters: ["default", new SkipReporter(), "json"],
    outputFile: { json: ".test-output/results.json" },
    projects: [
      {
        extends: true,
        test: {
          name: "ordinary",
          ...ordinaryTests,
          // Modules have no state but constants, which test/tidy.test.ts checks: files may share what they import.
          isolate: false,
          globalSetup: ["test/support/postgres/postgres-setup.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          ...systemTests,
          globalSetup: [
            "test/support/postgres/postgres-setup.ts",
            "test/support/kafka/kafka-setup.ts",
            "test/console/console-setup.ts",
          ],
        },
      },
      { extends: true, test: { name: "benchmark", ...benchmarkTests } },
    ],
  },
});
