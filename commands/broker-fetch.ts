/**
 * Fetches the Kafka broker that tests run into a cache outside of the repository, once. Needs Java and Maven; exits 1
 * with one line when something is missing.
 */
import { startFailure } from "../lib/service/process.ts";
import { runCommand } from "./command-line.ts";
import { brokerJarsFolder, fetchBrokerJars } from "./fetch/broker-jars.ts";

const folder = brokerJarsFolder();
await runCommand(() => {
  console.log(fetchBrokerJars(folder) ? `fetched the broker into ${folder}` : `the broker is in ${folder}`);
}, startFailure);
