import { readFile } from "node:fs/promises";
import { type ConfigOf, type ConfigSpec, textVar } from "../../runtime/config.ts";
import { StartError } from "../../runtime/start-error.ts";

/** Certificate and key of a listener; plain HTTP when both are unset. */
export const tlsSpec = {
  TLS_CERT_FILE: textVar({ default: undefined }),
  TLS_KEY_FILE: textVar({ default: undefined }),
} as const satisfies ConfigSpec;

/** Certificate and key of a listener, PEM; undefined when none is configured. Throws StartError. */
export async function readTlsFiles({
  TLS_CERT_FILE,
  TLS_KEY_FILE,
}: ConfigOf<typeof tlsSpec>): Promise<{ cert: Buffer; key: Buffer } | undefined> {
  if (TLS_CERT_FILE === undefined && TLS_KEY_FILE === undefined) return undefined;
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) {
    throw new StartError("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
  }
  const cert = await readNamed("TLS_CERT_FILE", TLS_CERT_FILE);
  return { cert, key: await readNamed("TLS_KEY_FILE", TLS_KEY_FILE) };
}

async function readNamed(name: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    throw new StartError(`${name} can't be read: ${code}`, { cause: thrown });
  }
}
