#!/usr/bin/env node
/**
 * The program `media-gateway` of the package. It goes on in the Node.js that npm installed with it where the one that
 * runs it is older, starts the whole gateway in one process, and hands every other word to the operator's commands.
 */
// biome-ignore-all lint/style/useNodejsImportProtocol: so that older Node.js than can run this reads it, too.
"use strict";
const childProcess = require("child_process");
const fs = require("fs");
const path = require("path");
const run = require("./run.cjs").run;

const root = path.join(__dirname, "..");
const leastMajor = 24;
const usage = `usage: media-gateway [start] [--port <n>] [--data-dir <folder>]

Starts the whole gateway in one process, with a PostgreSQL of its own.

  --port <n>            of the REST interface; PORT or 8080 unless given
  --data-dir <folder>   database and keys; DATA_DIR or .data unless given
  --version             tells the version

Every other setting is a variable of the environment. media-gateway stack starts each service as a process of its own;
migrate, topics, reconcile, rebuild-activity and replay-dead-letters are what operators run for those, with --help.
`;
const commands = ["migrate", "rebuild-activity", "reconcile", "replay-dead-letters", "stack", "topics"];

if (Number(process.versions.node.split(".")[0]) < leastMajor) goOnInOwnNode();
else main(process.argv.slice(2));

function main(words) {
  const [first = "start", ...rest] = words;
  if (first === "--version") process.stdout.write(`${require("../package.json").version}\n`);
  else if (commands.includes(first)) run(`commands/${first}.ts`, rest);
  else if (first === "--help" || (first === "start" && rest.includes("--help"))) help();
  else if (first === "start") start(rest);
  else if (first.startsWith("-")) start(words);
  else run("commands/media-gateway.ts", words);
}

function start(words) {
  const options = { port: { type: "string" }, "data-dir": { type: "string" } };
  let values;
  try {
    values = require("util").parseArgs({ args: words, options }).values;
  } catch (thrown) {
    fail(`${thrown.message}; --help tells what there is`);
  }
  if (values.port !== undefined) process.env.PORT = values.port;
  if (values["data-dir"] !== undefined) process.env.DATA_DIR = values["data-dir"];
  run("standalone/main.ts", []);
}

/** The operator's commands tell of themselves. */
function help() {
  process.stdout.write(`${usage}\n`);
  run("commands/media-gateway.ts", ["--help"]);
}

/** A terminal sends SIGINT to the child as well; whoever sends the others means this process alone. */
function goOnInOwnNode() {
  const node = ownNode();
  if (node === undefined) {
    fail(
      `npm's install scripts have not run, so that Node.js ${leastMajor} is missing: ` +
        `install again with them allowed, or run this with Node.js ${leastMajor} or newer`,
    );
  }
  const child = childProcess.spawn(node, [__filename].concat(process.argv.slice(2)), { stdio: "inherit" });
  process.on("SIGINT", () => undefined);
  ["SIGTERM", "SIGHUP"].forEach((signal) => {
    process.on(signal, () => child.kill(signal));
  });
  child.on("exit", (code, signal) => process.exit(signal === null ? code : 1));
}

function ownNode() {
  try {
    const folder = path.dirname(require.resolve("node/package.json", { paths: [root] }));
    const program = path.join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
    return fs.existsSync(program) ? program : undefined;
  } catch (_missing) {
    return undefined;
  }
}

function fail(why) {
  process.stderr.write(`error: ${why}\n`);
  process.exit(1);
}
