/**
 * Fetches the conformance suite of the Connect protocols into a cache outside of the repository, once. Needs Go; exits 1
 * with one line when something is missing.
 */
import { startFailure } from "../../lib/service/process.ts";
import { runCommand } from "../command-line.ts";
import { conformanceFolder, fetchConformance } from "./conformance.ts";

const folder = conformanceFolder();
await runCommand(() => {
  console.log(fetchConformance(folder) ? `fetched the suite into ${folder}` : `the suite is in ${folder}`);
}, startFailure);
