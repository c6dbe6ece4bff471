import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { SkipReporter } from "./test/support/skip-reporter.ts";

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    exclude: ["node_modules/**"],
    globalSetup: ["test/support/global-setup.ts"],
    // Many tests wait for processes of their own: on two cores, two at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", new SkipReporter(), ["json", { outputFile: ".test-output/results.json" }]],
  },
});
