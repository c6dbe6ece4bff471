import { argv, stderr, stdin, stdout } from "node:process";
import { text as textOf } from "node:stream/consumers";
import { Command, CommanderError, Option } from "commander";
import { type CommandOption, Input, type Noun, type Verb } from "./command.ts";
import { Cli, type CliSurroundings } from "./connect.ts";
import { describeFailure, exitCodes, wrongUsage } from "./failure.ts";
import { print, printable, type Terminal } from "./output.ts";

const about = `Operates a Media Gateway: accounts, keys, credit, usage, models, providers, destinations, and the books behind them.

Commands call standalone on this machine with the key that it made (RPC_PORT, DATA_DIR/keys/admin.jwk), or services of
their own where ACCOUNT_URL, USAGE_URL, DESTINATION_URL, SPEECH_URL and IMAGE_URL say so, with ADMIN_KEY_FILE.`;

const helpWidth = 120;

const codes = `Exit codes: 0 done, 1 what was looked at is not in order, 2 written wrongly, 3 refused, 4 not found,
5 unreachable, 6 not allowed, 70 a fault of this program. Errors are one line on stderr.`;

/** Runs the command line of this process: one of the nouns, a verb, and the rest; `before` stands before it. */
export async function runCommandLine(
  nouns: readonly Noun[],
  { before = [] }: { readonly before?: readonly string[] } = {},
): Promise<void> {
  stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    // Whoever read it has seen enough.
    process.exit(code === "EPIPE" ? process.exitCode : exitCodes.internal);
  });
  const terminal: Terminal = {
    out: (text) => void stdout.write(text),
    error: (text) => void stderr.write(text),
    read: () => textOf(stdin),
  };
  const code = await execute(nouns, [...before, ...argv.slice(2)], { env: process.env, terminal });
  process.exitCode = code;
  // After a failure, what was given up may still be tried.
  if (code > exitCodes.notInOrder) process.exit();
}

/** Does what a command line says; the exit code. */
export async function execute(
  nouns: readonly Noun[],
  words: readonly string[],
  surroundings: CliSurroundings,
): Promise<number> {
  let code: number = exitCodes.ok;
  const program = createProgram(nouns, surroundings, () => {
    code = exitCodes.notInOrder;
  });
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync(words, { from: "user" });
    return code;
  } catch (thrown) {
    return tell(thrown, surroundings.terminal);
  }
}

/** Says why a command line failed; the exit code. */
function tell(thrown: unknown, terminal: Terminal): number {
  if (!(thrown instanceof CommanderError)) {
    const { code, line } = describeFailure(thrown);
    terminal.error(`${printable(line)}\n`);
    return code;
  }
  // Help was asked for, or shown in the place of an error.
  if (thrown.code === "commander.helpDisplayed") return exitCodes.ok;
  if (thrown.code !== "commander.help") {
    const message = printable(thrown.message.replace(/\s*\n\s*/g, " "));
    terminal.error(`${message}${message.endsWith(".") ? "" : ";"} --help tells more\n`);
  }
  return exitCodes.usage;
}

/** The program of some nouns. */
function createProgram(nouns: readonly Noun[], surroundings: CliSurroundings, onWrong: () => void): Command {
  const program = new Command("media-gateway")
    .description(about)
    .usage("<noun> <verb> [options]")
    .option("--json", "print JSON in the place of tables; amounts are texts, exact")
    .option("--operator <name>", "who does this, for the audit; your login name unless given")
    .addHelpText("after", `\n${codes}`)
    .helpCommand(false);
  settle(program, surroundings);
  const act: Act = async (verb, input, { json, operator }) => {
    const output = await verb.run(input, new Cli(operator, surroundings));
    print(output, json === true, surroundings.terminal);
    if (output.isWrong === true) onWrong();
  };
  for (const noun of nouns) addNoun(program, noun, { surroundings, act });
  return program;
}

/** Does what a verb is for. */
type Act = (
  verb: Verb,
  input: Input,
  options: { readonly json?: boolean; readonly operator?: string },
) => Promise<void>;

interface Setting {
  readonly surroundings: CliSurroundings;
  readonly act: Act;
}

function addNoun(program: Command, { name, alias, summary, verbs }: Noun, setting: Setting): void {
  const [first] = verbs;
  if (first?.name === "") {
    addVerb(program, { ...first, name }, name, setting);
    return;
  }
  const command = program.command(name).description(summary).usage("<verb> [options]").helpCommand(false);
  if (alias !== undefined) command.alias(alias);
  settle(command, setting.surroundings);
  for (const verb of verbs) addVerb(command, verb, `${name} ${verb.name}`, setting);
}

function settle(command: Command, { terminal }: CliSurroundings): void {
  command
    .exitOverride()
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.error,
      outputError: () => undefined,
      getOutHelpWidth: () => helpWidth,
      getErrHelpWidth: () => helpWidth,
    })
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions: globalOptions });
}

/** Without `--help`, which stands in the list of the command itself. */
function globalOptions(command: Command): Option[] {
  const root = command.parent?.parent ?? command.parent;
  return root === null || root === undefined ? [] : [...root.options];
}

function addVerb(parent: Command, verb: Verb, path: string, { surroundings, act }: Setting): void {
  const { positionals = [], optional = [], options = [] } = verb;
  const usage = [
    ...positionals.map((name) => (optional.includes(name) ? `[<${name}>]` : `<${name}>`)),
    "[options]",
  ].join(" ");
  const command = parent.command(verb.name).description(verb.summary).usage(usage);
  for (const name of positionals) command.argument(`[${name}]`);
  for (const option of options) command.addOption(toOption(option));
  if (verb.details !== undefined) command.addHelpText("after", `\n${verb.details}`);
  command.configureHelp({ visibleArguments: () => [] });
  settle(command, surroundings);
  command.action(async () => {
    const values = {
      ...optionValues(command, options),
      ...positionalValues(command, verb, `${path} ${usage}`),
    };
    await act(verb, new Input(values), command.optsWithGlobals());
  });
}

function toOption({ name, value, help }: CommandOption): Option {
  return new Option(value === undefined ? `--${name}` : `--${name} <${value}>`, help);
}

function optionValues(command: Command, options: readonly CommandOption[]) {
  const read = command.opts<Record<string, string | boolean | undefined>>();
  return Object.fromEntries(options.map((option) => [option.name, read[toOption(option).attributeName()]]));
}

/** Where fewer are given than there are, the first that may be left out are. */
function positionalValues(command: Command, { positionals = [], optional = [] }: Verb, usage: string) {
  const given = command.args;
  const missing = positionals.length - given.length;
  const left = optional.slice(0, missing);
  const names = positionals.filter((name) => !left.includes(name));
  const [lacking] = names.slice(given.length);
  if (lacking !== undefined) throw wrongUsage(`${lacking} is missing: ${usage}`);
  return Object.fromEntries(names.map((name, at) => [name, given[at]]));
}
