import { timestampDate } from "@bufbuild/protobuf/wkt";
import { httpUrlVar, portVar, readConfig } from "../../../lib/runtime/config.ts";
import { accountOption, type Input, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import type { Output } from "../output.ts";

/** Where the gateway is for whoever opens the link. */
const gatewaySpec = {
  PUBLIC_URL: httpUrlVar({ default: undefined }),
  PORT: portVar({ default: 8080 }),
} as const;

/** What signs a browser in. */
export const consoleLink: Noun = {
  name: "console-link",
  alias: "console-links",
  summary: "addresses that sign a browser in to the console",
  verbs: [
    {
      name: "create",
      summary: "make one and show it, this once",
      options: [
        accountOption,
        {
          name: "url",
          value: "url",
          help: "where the gateway is; PUBLIC_URL or http://localhost:PORT unless given",
        },
      ],
      details: "It serves once, within ten minutes, and gives keys that expire in 24 hours.",
      run: createConsoleLink,
    },
  ],
};

async function createConsoleLink(input: Input, cli: Cli): Promise<Output> {
  const { PUBLIC_URL, PORT } = readConfig(gatewaySpec, cli.env);
  const base = (input.text("url") ?? PUBLIC_URL ?? `http://localhost:${PORT}`).replace(/\/+$/, "");
  const accountId = await cli.accountId(input.text("account"));
  const { code, expiresAt } = await (await cli.account()).createConsoleLink({ accountId });
  const until = expiresAt && timestampDate(expiresAt);
  return {
    secret: `${base}/#/link/${code}`,
    fields: { account: accountId, expires_at: until },
    notes: [`signs a browser in to account ${accountId}, once, until ${until?.toISOString()}`],
  };
}
