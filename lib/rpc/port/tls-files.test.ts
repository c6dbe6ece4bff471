import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readConfig } from "../../runtime/config.ts";
import { StartError } from "../../runtime/start-error.ts";
import { readTlsFiles, tlsSpec } from "./tls-files.ts";

/** Paths of a certificate, of a key and of a file that is not there, in a folder of their own. */
function makeFiles() {
  const folder = mkdtempSync(join(tmpdir(), "tls-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, "certificate");
  writeFileSync(key, "key");
  return { folder, cert, key, missing: join(folder, "none.pem") };
}

const read = (environment: NodeJS.ProcessEnv) => readTlsFiles(readConfig(tlsSpec, environment));

describe("certificate and key", () => {
  test("are read as they are", async () => {
    const { cert, key } = makeFiles();
    const both = await read({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key });
    expect([both?.cert.toString(), both?.key.toString()]).toEqual(["certificate", "key"]);
  });

  test("may both be left out or left empty", async () => {
    expect(await read({})).toBeUndefined();
    expect(await read({ TLS_CERT_FILE: "", TLS_KEY_FILE: "" })).toBeUndefined();
  });

  test("are set together or not at all", async () => {
    const { cert, key } = makeFiles();
    const refusal = new StartError("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
    await expect(read({ TLS_CERT_FILE: cert })).rejects.toThrow(refusal);
    await expect(read({ TLS_KEY_FILE: key, TLS_CERT_FILE: "" })).rejects.toThrow(refusal);
  });

  test("that can't be read are named by their variable, with the reason", async () => {
    const { folder, cert, key, missing } = makeFiles();
    await expect(read({ TLS_CERT_FILE: cert, TLS_KEY_FILE: missing })).rejects.toThrow(
      new StartError("TLS_KEY_FILE can't be read: ENOENT"),
    );
    await expect(read({ TLS_CERT_FILE: folder, TLS_KEY_FILE: key })).rejects.toThrow(
      new StartError("TLS_CERT_FILE can't be read: EISDIR"),
    );
  });
});
