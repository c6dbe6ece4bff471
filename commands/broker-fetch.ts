/**
 * Fetches the Kafka broker that tests run into a cache outside of the repository, once. Needs Java and Maven; exits 1
 * with one line when something is missing.
 */
import { BrokerFetchError, brokerJarsFolder, fetchBrokerJars } from "./fetch/broker-jars.ts";

const folder = brokerJarsFolder();
try {
  console.log(fetchBrokerJars(folder) ? `fetched the broker into ${folder}` : `the broker is in ${folder}`);
} catch (thrown) {
  if (!(thrown instanceof BrokerFetchError)) throw thrown;
  console.error(`error: ${thrown.message}`);
  process.exitCode = 1;
}
