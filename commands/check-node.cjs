/**
 * Ends npm with one line on what to do, where the Node.js that runs npm is too old to install for, or nothing is
 * installed yet. Alone it is the check before an install, and preloaded (`node --require`) the one before a start.
 *
 * Old versions of Node.js must be able to read this: no syntax and no module names of after Node.js 10. npm runs
 * scripts on the Node.js that it has installed, once it has; its own is named by npm_config_user_agent.
 */
// biome-ignore-all lint/style/useNodejsImportProtocol: Node.js knows it since 14.18.
"use strict";
const existsSync = require("fs").existsSync;
const path = require("path");

const root = path.join(__dirname, "..");
const fault = nodeFault() || (require.main === module ? undefined : installFault());
if (fault) {
  process.stderr.write(`error: ${fault}\n`);
  process.exit(1);
}

function nodeFault() {
  const floor = require("../package.json").engines.node.replace(">=", "");
  const agent = /(?:^| )node\/v(\S+)/.exec(process.env.npm_config_user_agent || "");
  const version = agent ? agent[1] : process.versions.node;
  const is = version.split(".").map(Number);
  const least = floor.split(".").map(Number);
  if (is[0] > least[0] || (is[0] === least[0] && is[1] >= least[1])) return undefined;
  return `Node.js ${version} is too old: install Node.js ${floor} or newer, then run npm ci`;
}

function installFault() {
  // The package "node", whose program is there once its install script has run.
  if (process.execPath.split(path.sep).indexOf("node_modules") >= 0) return undefined;
  return existsSync(path.join(root, "node_modules", "node"))
    ? "install scripts have not run: run npm ci again, without --ignore-scripts"
    : "nothing is installed yet: run npm ci first";
}
