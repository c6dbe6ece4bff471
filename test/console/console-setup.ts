import { buildConsole } from "../../commands/build/console.ts";

/** Builds the console, once for all test files, where it is missing or stale. */
export function setup(): void {
  buildConsole({ whenStale: true });
}
