/**
 * Fetches the Python clients that tests run into a cache outside of the repository, once. Needs Python 3 with venv;
 * exits 1 with one line when something is missing.
 */
import { fetchPythonClients, PythonFetchError, pythonClientsFolder } from "./fetch/python-clients.ts";

const folder = pythonClientsFolder();
try {
  const fetched = fetchPythonClients(folder);
  console.log(fetched ? `fetched the Python clients into ${folder}` : `the Python clients are in ${folder}`);
} catch (thrown) {
  if (!(thrown instanceof PythonFetchError)) throw thrown;
  console.error(`error: ${thrown.message}`);
  process.exitCode = 1;
}
