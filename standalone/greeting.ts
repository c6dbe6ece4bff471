import type { BootstrapKeys } from "../services/account/accounts/bootstrap.ts";

interface Greeting {
  /** Where clients reach the gateway, without a slash at its end. */
  readonly url: string;
  readonly rpcPort: number;
  /** Those keys of the first account that were generated; undefined on every start but the first, or where none is. */
  readonly keys: BootstrapKeys | undefined;
  /** Whether a browser finds the console there. */
  readonly hasConsole?: boolean;
  /** Signs a browser in to the console, once. */
  readonly code?: string | undefined;
}

const heard =
  '{"model":"local/flite","input":"Hello. The first words of this are on their way to you, while the rest of it is still being made."}';

/** A text for people: addresses, and on the first start the keys that were made and lines to paste. */
export function greeting({ url, rpcPort, keys, hasConsole = false, code }: Greeting): string {
  const page = hasConsole ? `${consoleLines(url, code)}\n` : "";
  const addresses = `\nMedia Gateway serves ${url}/api/v1 (RPC on port ${rpcPort}).\n${page}${links(url)}\n`;
  if (keys === undefined) {
    return `${addresses}Keys are shown when they are made; for a new one: npx media-gateway key create\n\n`;
  }
  return `${addresses}
${keysMade(keys)}

${linesToPaste(url, keys)}

Hear it:
  curl -sN "$MEDIA_URL/audio/speech" -H "Authorization: Bearer $MEDIA_KEY" -H 'Content-Type: application/json' -d '${heard}' -o hello.mp3

Play hello.mp3 with any player, or put "| mpg123 -" in place of "-o hello.mp3" to hear it while it is being made.

`;
}

/** Where the console is, and the link that signs in. The code stands behind `#`, which browsers send to nobody. */
function consoleLines(url: string, code: string | undefined): string {
  if (code === undefined) return `The console: ${url}/`;
  return `The console, signed in (once, within 10 minutes): ${url}/#/link/${code}`;
}

/** Where to look with a browser. */
export function links(url: string): string {
  return `To read and to try: ${url}/docs`;
}

/** What makes clients in another terminal know the gateway: where it is, and a key. */
export function linesToPaste(
  url: string,
  { inferenceKey = "$BOOTSTRAP_INFERENCE_KEY" }: BootstrapKeys,
): string {
  return `For another terminal:
  export MEDIA_URL=${url}/api/v1
  export MEDIA_KEY=${inferenceKey}`;
}

/** The keys that nobody has yet; what an operator gave stands in no terminal. */
export function keysMade({ inferenceKey, managementKey }: BootstrapKeys): string {
  const lines = [
    ...(inferenceKey === undefined ? [] : [`  inference   ${inferenceKey}`]),
    ...(managementKey === undefined ? [] : [`  management  ${managementKey}`]),
  ];
  const heading = ["The first account has the keys that were given.", "One key, shown this once:"][
    lines.length
  ];
  return [heading ?? "Two keys, shown this once:", ...lines].join("\n");
}
