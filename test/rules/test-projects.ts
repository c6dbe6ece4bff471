import { posix } from "node:path";

/** Which files a project of vitest takes, as patterns. */
export interface TestProjectFiles {
  readonly include: string[];
  readonly exclude: string[];
}

const systemFolders = "test/{attack,broker,console,crash,processes,system}";
const benchmarkFolder = "test/benchmark";
const everyTest = "**/*.test.ts";
const packages = "**/node_modules/**";

/** What `npm test` runs: all that needs PostgreSQL and Redis at most, and takes its time by being many. */
export const ordinaryTests: TestProjectFiles = {
  include: [everyTest],
  exclude: [packages, `${systemFolders}/**`, `${benchmarkFolder}/**`],
};

/** What `npm run test:system` runs: Kafka, processes that are killed, a process for each service, attacks. */
export const systemTests: TestProjectFiles = {
  include: [`${systemFolders}/**/*.test.ts`],
  exclude: [packages],
};

/** What `npm run test:benchmark` runs, alone on the machine, since it measures: the comparison with the last release. */
export const benchmarkTests: TestProjectFiles = {
  include: [`${benchmarkFolder}/**/*.test.ts`],
  exclude: [packages],
};

/** Whether vitest would take the file, given by its path from the root, into a project. */
export function isTakenBy({ include, exclude }: TestProjectFiles, path: string): boolean {
  const matches = (pattern: string) => posix.matchesGlob(path, pattern);
  return include.some(matches) && !exclude.some(matches);
}
