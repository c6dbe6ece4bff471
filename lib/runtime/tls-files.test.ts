import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StartError } from "./process.ts";
import { readTlsFiles } from "./tls-files.ts";

test("certificate and key are read together or not at all", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tls-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certFile, "certificate");
  writeFileSync(keyFile, "key");

  expect(await readTlsFiles({ TLS_CERT_FILE: undefined, TLS_KEY_FILE: undefined })).toBeUndefined();
  const both = await readTlsFiles({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
  expect([both?.cert.toString(), both?.key.toString()]).toEqual(["certificate", "key"]);
  const one = readTlsFiles({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: undefined });
  await expect(one).rejects.toThrow("TLS_CERT_FILE and TLS_KEY_FILE must be set together");
  const missing = readTlsFiles({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: join(folder, "none.pem") });
  await expect(missing).rejects.toThrow(new StartError("TLS_KEY_FILE can't be read: ENOENT"));
});
