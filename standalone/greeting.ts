import type { BootstrapKeys } from "../services/account/bootstrap.ts";

/** What the terminal shows when everything serves. */
export interface Greeting {
  /** Where clients reach the gateway, without a slash at its end. */
  readonly url: string;
  readonly rpcPort: number;
  /** The keys of the first account; undefined on every start but the first. */
  readonly keys: BootstrapKeys | undefined;
}

/** A text for people: addresses, and on the first start both keys and a line to paste. */
export function greeting({ url, rpcPort, keys }: Greeting): string {
  const addresses = `\nMedia Gateway serves ${url}/api/v1 (RPC on port ${rpcPort}).\n`;
  if (keys === undefined) {
    return `${addresses}Keys were shown on the first start; for a new one: npm run admin -- key create\n\n`;
  }
  return `${addresses}
Two keys, shown this once:
  inference   ${keys.inferenceKey}
  management  ${keys.managementKey}

Hear it:
  curl -sN ${url}/api/v1/audio/speech -H 'Authorization: Bearer ${keys.inferenceKey}' -H 'Content-Type: application/json' -d '{"model":"local/flite","input":"Hello. The first words of this are on their way to you, while the rest of it is still being made."}' -o hello.mp3

Play hello.mp3 with any player, or put "| mpg123 -" in place of "-o hello.mp3" to hear it while it is being made.

`;
}
