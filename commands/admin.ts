import { parseArgs } from "node:util";
import { StartError } from "../lib/runtime/start-error.ts";
import type { AdminOptions, AdminOutput } from "./admin/action.ts";
import { adminActions } from "./admin/actions.ts";
import { connectAdmin, refused } from "./admin/client.ts";
import { otherAdminActions } from "./admin/other-actions.ts";
import { runCommand } from "./command-line.ts";

const names = Object.entries({ ...adminActions, ...otherAdminActions }).map(([name, { usage }]) =>
  `  ${name} ${usage}`.trimEnd(),
);
const usage = `usage: npm run admin -- <command>

${names.join("\n")}

service-keys create writes what every process needs to know the others: a private key for each (SERVICE_KEY_FILE), the
operator's (ADMIN_KEY_FILE) and the set of public ones (SERVICE_JWKS_FILE). What is there already stays as it is, so a
private key that was moved away is replaced and its public half stays beside the new one. service-keys prune then takes
those public keys out of the set that no private key of the directory belongs to.

Every other command calls the account service, destinations reseal the destination service, provider test the speech
service and, where a provider does not speak, the image service. They take --operator <name>, which the audit shows; your
login name unless given. The account may be left out where there is one. Environment: ACCOUNT_URL, DESTINATION_URL,
SPEECH_URL, IMAGE_URL (http://localhost:8081), ADMIN_KEY_FILE (DATA_DIR/keys/admin.jwk).

console-link create prints an address that signs a browser in to the console: once, within ten minutes, with keys that
expire in 24 hours. --url says where the gateway is; PUBLIC_URL or http://localhost:PORT unless given.

provider test makes one live call with the operator's key, the cheapest that the provider has, and says what comes of it.
It charges no account and leaves no usage record; its vendor bills it. --key tries another of several keys than the first.

credit grant gives credit once for each --id; without one every call gives anew. holds list shows the holds of requests
whose deadline lies in the span, a day back and a day ahead unless given. account show and credit grant take the account
as --account <id>, too. provider-keys reseal seals accounts' own provider keys again with the first of MASTER_KEYS, and
destinations reseal what destinations keep secret; after both the other master keys may go.`;

await runCommand(async () => {
  const words = process.argv.slice(2);
  if (words.length === 0 || words.includes("--help")) console.log(usage);
  else print(await run(words));
});

async function run([noun = "", verb = "", ...rest]: readonly string[]): Promise<AdminOutput> {
  const name = `${noun} ${verb}`;
  const other = Object.hasOwn(otherAdminActions, name) ? otherAdminActions[name] : undefined;
  if (other !== undefined) {
    return await other.run(parseOptions(other.options, other.positionals ?? [], rest));
  }
  const action = Object.hasOwn(adminActions, name) ? adminActions[name] : undefined;
  if (action === undefined) throw new StartError(`no command "${name.trim()}"; --help lists them`);
  const { positionals = [] } = action;
  const { operator, ...options } = parseOptions([...action.options, "operator"], positionals, rest);
  const { url, rpc } = await connectAdmin(operator);
  return action.run(rpc, options).catch(refused(`account service at ${url}`));
}

/** The options by name; of `unnamed` ones that stand without a name the last come first. */
function parseOptions(
  named: readonly string[],
  unnamed: readonly string[],
  args: readonly string[],
): AdminOptions {
  const options = Object.fromEntries(named.map((option) => [option, { type: "string" } as const]));
  try {
    const allowPositionals = unnamed.length > 0;
    const { values, positionals } = parseArgs({ args: [...args], options, strict: true, allowPositionals });
    if (positionals.length > unnamed.length) throw new StartError(`"${positionals.at(-1)}" is too much`);
    const names = unnamed.slice(unnamed.length - positionals.length);
    return { ...values, ...Object.fromEntries(names.map((name, index) => [name, positionals[index]])) };
  } catch (thrown) {
    throw new StartError(thrown instanceof Error ? thrown.message : "malformed options");
  }
}

function print({ result, notes = [] }: AdminOutput): void {
  for (const line of result) console.log(line);
  for (const line of notes) console.error(line);
}
