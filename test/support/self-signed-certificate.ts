import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A key and a certificate in PEM. */
export interface SelfSignedCertificate {
  readonly key: Buffer;
  readonly cert: Buffer;
}

/** A fresh certificate for `localhost` and 127.0.0.1 that nobody has signed; undefined without the openssl command. */
export function selfSignedCertificate(): SelfSignedCertificate | undefined {
  const folder = mkdtempSync(join(tmpdir(), "certificate-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  try {
    execFileSync("openssl", ["req", "-x509", ...newKey, "-out", cert, "-days", "2", ...names], {
      stdio: "ignore",
    });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
