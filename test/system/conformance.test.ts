/** The suite that the Connect project calls its own servers with, against our RPC port: every protocol that it speaks. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  conformanceDescriptors,
  conformanceFolder,
  conformanceProgram,
} from "../../commands/fetch/conformance.ts";
import { startConformanceServer } from "../support/conformance/server.ts";
import { selfSignedCertificate } from "../support/self-signed-certificate.ts";

/**
 * What our port serves. Not in JSON: the suite's messages have fields of any type, and our port knows no types but those
 * of its services. Without a limit of messages: ours are by RPC, whatever a server is given
 * (lib/rpc/request/request-reader.test.ts).
 */
const features = {
  versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
  protocols: ["PROTOCOL_CONNECT", "PROTOCOL_GRPC", "PROTOCOL_GRPC_WEB"],
  codecs: ["CODEC_PROTO"],
  compressions: ["COMPRESSION_IDENTITY", "COMPRESSION_GZIP"],
  supportsH2c: true,
  supportsTlsClientCerts: false,
  supportsHalfDuplexBidiOverHttp1: false,
  supportsConnectGet: true,
  supportsMessageReceiveLimit: false,
};

/** Where we answer otherwise than the suite expects; patterns of its own. One that passes fails the suite. */
const exceptions = [
  // A body that is not one message is invalid_argument with our detail, on every path alike.
  "**/unary/multiple-requests",
  "**/server-stream/multiple-requests",
  "**/unexpected-compressed-message",
  // A path that is no RPC is answered in JSON with status 404, of which gRPC's clients make unimplemented; the suite's own
  // reads that JSON only over Connect.
  "gRPC Unexpected Requests/**/unexpected-uri",
  "gRPC-Web Unexpected Requests/**/unexpected-uri",
];
/** What depends on how busy the machine is: how much of a deadline is left when the request has come. */
const busy = ["Deadline Propagation/**"];

/**
 * What the suite starts for each of its ten kinds of server. One that has to start first would not always do that within
 * its time on a busy machine; ours runs already, and this says where.
 */
const program = ["sh", "-c", 'cat > /dev/null; cat "$0"; exec sleep 600'];

function run(file: string, args: readonly string[]): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    execFile(file, args, { maxBuffer: 64 << 20 }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, output: out + error });
    });
  });
}

test.for([false, true])(
  "the port conforms to Connect, gRPC and gRPC-Web; over TLS: %s",
  { timeout: 600_000 },
  async (isTls, { skip }) => {
    const folder = conformanceFolder();
    const [suite, descriptors] = [conformanceProgram(folder), conformanceDescriptors(folder)];
    skip(!existsSync(suite) || !existsSync(descriptors), "the suite is missing: npm run conformance:fetch");
    const certificate = isTls ? selfSignedCertificate() : undefined;
    skip(isTls && certificate === undefined, "openssl is missing");
    await using server = await startConformanceServer(descriptors, certificate);
    const scratch = await mkdtemp(join(tmpdir(), "conformance-"));
    onTestFinished(() => rm(scratch, { recursive: true }));
    const [configPath, responsePath] = [join(scratch, "config.yaml"), join(scratch, "response")];
    // YAML, which JSON is, too.
    const config = { features: { ...features, supportsTls: isTls }, excludeCases: [{ useTls: !isTls }] };
    await writeFile(configPath, JSON.stringify(config));
    await writeFile(responsePath, server.response);
    const known = exceptions.flatMap((pattern) => ["--known-failing", pattern]);
    const flaky = busy.flatMap((pattern) => ["--known-flaky", pattern]);
    const options = ["--mode", "server", "--conf", configPath, "--parallel", "16", ...known, ...flaky];
    const { code, output } = await run(suite, [...options, "--", ...program, responsePath]);
    const failures = output.split(/^(?=FAILED|INFO|Total)/m).filter((block) => block.startsWith("FAILED"));
    expect([failures.length, ...failures.slice(0, 5)], output.slice(0, 500)).toEqual([0]);
    expect(Number(/^Total cases: (\d+)$/m.exec(output)?.[1])).toBeGreaterThan(800);
    expect(code).toBe(0);
  },
);
