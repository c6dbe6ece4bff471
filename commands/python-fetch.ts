/**
 * Fetches the Python clients that tests run into a cache outside of the repository, once. Needs Python 3 with venv;
 * exits 1 with one line when something is missing.
 */
import { startFailure } from "../lib/service/process.ts";
import { runCommand } from "./command-line.ts";
import { fetchPythonClients, pythonClientsFolder } from "./fetch/python-clients.ts";

const folder = pythonClientsFolder();
await runCommand(() => {
  const fetched = fetchPythonClients(folder);
  console.log(fetched ? `fetched the Python clients into ${folder}` : `the Python clients are in ${folder}`);
}, startFailure);
