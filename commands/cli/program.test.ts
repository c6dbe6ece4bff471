import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { commandHere, commandLine } from "../../test/support/processes/command-line.ts";
import type { Noun, Verb } from "./command.ts";
import { exitCodes } from "./failure.ts";
import { nouns } from "./nouns.ts";

const page = readFileSync(new URL("../../docs/command-line.md", import.meta.url), "utf8");
const verbs = nouns.flatMap((noun) =>
  noun.verbs.map((verb): [string, Noun, Verb] => [`${noun.name} ${verb.name}`.trim(), noun, verb]),
);

async function helpOf(path: string): Promise<string> {
  const words = path.split(" ").filter((word) => word !== "");
  const { code, out, error } = await commandHere([...words, "--help"]);
  expect({ code, error }).toEqual({ code: 0, error: "" });
  return out;
}

describe("help", () => {
  test("of the program names every noun and every exit code", async () => {
    const { code, out } = await commandLine([]);
    expect(code).toBe(0);
    for (const { name, summary } of nouns)
      expect(out).toMatch(new RegExp(`^  ${name}[| ].*${summary.slice(0, 20)}`, "m"));
    for (const exit of Object.values(exitCodes)) expect(out).toMatch(new RegExp(`\\b${exit} `));
    expect((await commandLine(["--help"])).out).toBe(out);
  });

  test.for(
    nouns.filter(({ verbs }) => verbs[0]?.name !== "").map((noun): [string, Noun] => [noun.name, noun]),
  )("of %s names its verbs", async ([name, noun]) => {
    const help = await helpOf(name);
    expect(help).toContain(noun.summary);
    for (const verb of noun.verbs)
      expect(help).toMatch(new RegExp(`^  ${verb.name}( .*)? {2,}${verb.summary.slice(0, 20)}`, "m"));
  });

  test.for(verbs)("of %s says what stands behind it", async ([path, , verb]) => {
    const help = await helpOf(path);
    expect(help).toContain(`Usage: media-gateway ${path}`);
    expect(help).toContain(verb.summary);
    for (const name of verb.positionals ?? []) expect(help).toContain(`<${name}>`);
    for (const { name, value } of verb.options ?? [])
      expect(help).toContain(value === undefined ? `--${name}` : `--${name} <${value}>`);
    expect(help).toContain("--json");
    expect(help).toContain("--operator <name>");
  });

  test("is asked for at each level, and stands in the place of a verb that is missing", async () => {
    for (const words of [
      ["key", "--help"],
      ["key", "list", "--help"],
      ["doctor", "--help"],
    ]) {
      const { code, out, error } = await commandLine(words);
      expect({ words, code, error }).toEqual({ words, code: 0, error: "" });
      expect(out).toContain(`Usage: media-gateway ${words.slice(0, -1).join(" ")}`);
    }
    const { code, out, error } = await commandLine(["key"]);
    expect({ code, out }).toEqual({ code: exitCodes.usage, out: "" });
    expect(error).toContain("Usage: media-gateway key");
  });

  test("has no field names and no nano-USD", () => {
    for (const [path, , { summary, details = "", options = [] }] of verbs) {
      const words = [summary, details, ...options.map(({ help }) => help)].join(" ");
      expect([path, words.match(/nano|[a-z][A-Z]|\b[a-z]+_[a-z]+\b/)]).toEqual([path, null]);
    }
  });
});

describe("the page", () => {
  test.for(verbs)("tells of %s with all that it takes", ([path, , verb]) => {
    const line = page.split("\n").find((line) => line.startsWith(`| \`${path}`));
    expect(line, `docs/command-line.md has no row for ${path}`).toBeDefined();
    for (const { name } of verb.options ?? []) expect(line).toContain(`--${name}`);
    for (const name of verb.positionals ?? []) expect(line).toContain(`<${name}>`);
  });

  test("tells of no other verb", () => {
    const rows = [...page.matchAll(/^\| `([a-z-]+(?: [a-z]+)?)[^`]*` \|/gm)].map(([, path]) => path);
    const known = new Set(verbs.map(([path]) => path));
    expect(rows.filter((path) => !known.has(path ?? ""))).toEqual([]);
    expect(rows).toHaveLength(known.size);
  });

  test("tells of every exit code", () => {
    for (const code of Object.values(exitCodes)) expect(page).toMatch(new RegExp(`^\\| ${code} +\\|`, "m"));
  });
});

describe("what is written wrongly", () => {
  test.for<[string, RegExp]>([
    ["nothing", /unknown command 'nothing'/],
    ["key destroy", /unknown command 'destroy'/],
    ["kee list", /unknown command 'kee' \(Did you mean key\?\)/],
    ["key list --colour red", /unknown option '--colour'/],
    ["key create --kind master", /--kind takes inference, management, not master/],
    ["key create --limit much", /US dollars such as 10 or 2.50, not much/],
    ["key create --scopes speech,smell", /--scopes takes speech, images, not smell/],
    ["key create --expires soon", /--expires must be an instant/],
    ["key show", /key is missing: key show <key>/],
    ["key disable sk-abcdefghijklmnopqrstuvwxyz", /name the key by its hash/],
    ["key rotate 0123456789ab --grace forever", /--grace must be a whole number/],
    ["account create", /--name is required/],
    ["member add", /--name is required/],
    ["member remove", /--member is required/],
    ["account rename x", /account is missing|name is missing/],
    ["credit grant", /usd is missing: credit grant \[<account>\] <usd>/],
    ["credit grant x ten", /US dollars such as 10 or 2.50, not ten/],
    ["credit grant x 1 2", /too many arguments/],
    ["credit grant x -1", /credit correct takes credit back/],
    ["credit correct x 1 --reason r", /a correction has a minus/],
    ["credit correct x -1", /--reason is required/],
    ["hold list --from yesterday", /--from must be an instant/],
    ["hold list --state shut", /--state takes open, settled/],
    ["audit list --limit ten", /--limit must be/],
    ["request list --outcome odd", /--outcome takes succeeded, failed/],
    ["model list --medium smell", /--medium takes speech, image, not smell/],
    ["usage series --step week", /--step takes hour, day, not week/],
    ["books reconcile --from 2030-02-30", /take a date written YYYY-MM-DD/],
    ["books reconcile --wait long", /--wait takes seconds/],
    ["activity rebuild", /--from is required/],
    ["dead-letter replay", /--group is required/],
    ["service-key create", /--directory is required/],
    ["database migrate", /DATABASE_URL is required/],
    ["topic check", /KAFKA_BROKERS is required/],
  ])("%s", async ([line, message]) => {
    const { code, out, error } = await commandHere(line.split(" "));
    expect({ code, out }, error).toEqual({ code: exitCodes.usage, out: "" });
    expect(error).toMatch(message);
    expect(error).toMatch(/^error: [^\n]+\n$/);
    expect(error).not.toContain("abcdefghijklmnop");
  });
});
