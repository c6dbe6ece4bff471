/**
 * `node commands/run.cjs standalone/main.ts` runs an entry point, with the words behind it: from dist/ (`npm run build`)
 * where that was made of the files as they are now, otherwise from the sources, and says so where dist/ is older.
 */
// biome-ignore-all lint/style/useNodejsImportProtocol: so that older Node.js than can run this reads it, too.
"use strict";
const fs = require("fs");
const path = require("path");
const url = require("url");

const root = path.join(__dirname, "..");
const dist = path.join(root, "dist");

module.exports = { run };

if (require.main === module) {
  require("./check-node.cjs");
  run(process.argv[2], process.argv.slice(3));
}

function run(script, words) {
  const name = path.basename(script, ".ts");
  const bundle = path.join(dist, `${name === "main" ? path.basename(path.dirname(script)) : name}.js`);
  const source = path.join(root, script);
  // A package that was installed has no sources.
  const program = !fs.existsSync(source) || isFresh() ? bundle : source;
  process.argv.splice(1, process.argv.length, program, ...words);
  import(url.pathToFileURL(program));
}

function isFresh() {
  let inputs;
  try {
    inputs = JSON.parse(fs.readFileSync(path.join(dist, "inputs.json"), "utf8")).files;
  } catch (_missing) {
    return false;
  }
  const changed = Object.keys(inputs).find((file) => {
    const [bytes, changedMs] = inputs[file];
    const stat = fs.statSync(path.join(root, file), { throwIfNoEntry: false });
    return stat === undefined || stat.size !== bytes || Math.trunc(stat.mtimeMs) !== changedMs;
  });
  if (changed === undefined) return true;
  process.stderr.write(`dist/ is older than ${changed}: running the sources; npm run build makes it anew\n`);
  return false;
}
