/** Runs before each test file, so that this hook, the first one, is the last to run. */
import { afterAll } from "vitest";
import { endLeftovers } from "./leftovers.ts";

afterAll(endLeftovers);
