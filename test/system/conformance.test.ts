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

const server = new URL("../support/conformance/server.ts", import.meta.url).pathname;

/**
 * What our port serves, as YAML, which JSON is, too. Not in JSON: the suite's messages have fields of any type, and our
 * port knows no types but those of its services. Without a limit of messages: ours are by RPC, and the same for every
 * server (lib/rpc/request/request-reader.test.ts).
 */
const config = {
  features: {
    versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
    protocols: ["PROTOCOL_CONNECT", "PROTOCOL_GRPC", "PROTOCOL_GRPC_WEB"],
    codecs: ["CODEC_PROTO"],
    compressions: ["COMPRESSION_IDENTITY", "COMPRESSION_GZIP"],
    supportsH2c: true,
    supportsTls: true,
    supportsTlsClientCerts: false,
    supportsHalfDuplexBidiOverHttp1: false,
    supportsConnectGet: true,
    supportsMessageReceiveLimit: false,
  },
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

function run(program: string, args: readonly string[]): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { maxBuffer: 64 << 20 }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, output: out + error });
    });
  });
}

test("the port conforms to Connect, gRPC and gRPC-Web", { timeout: 600_000 }, async ({ skip }) => {
  const folder = conformanceFolder();
  const [program, descriptors] = [conformanceProgram(folder), conformanceDescriptors(folder)];
  skip(!existsSync(program) || !existsSync(descriptors), "the suite is missing: npm run conformance:fetch");
  const scratch = await mkdtemp(join(tmpdir(), "conformance-"));
  onTestFinished(() => rm(scratch, { recursive: true }));
  const configPath = join(scratch, "config.yaml");
  await writeFile(configPath, JSON.stringify(config));
  const known = exceptions.flatMap((pattern) => ["--known-failing", pattern]);
  const flaky = busy.flatMap((pattern) => ["--known-flaky", pattern]);
  const options = ["--mode", "server", "--conf", configPath, "--parallel", "16", ...known, ...flaky];
  const command = [process.execPath, server, descriptors];
  const { code, output } = await run(program, [...options, "--", ...command]);
  const failures = output.split(/^(?=FAILED|INFO|Total)/m).filter((block) => block.startsWith("FAILED"));
  expect([failures.length, ...failures.slice(0, 5)]).toEqual([0]);
  expect(output).toMatch(/^Total cases: \d{4,}$/m);
  expect(code).toBe(0);
});
