/**
 * A Kubernetes API server with its etcd, on loopback and for one check.
 *
 * - Nothing is left of it: both processes are ended and their folder is removed, whatever happens.
 * - Its certificate, key and token are made for this run and known to nobody else.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { StartError } from "../../lib/runtime/start-error.ts";
import { runProgram } from "../fetch/kept-folder.ts";
import { freePorts } from "../stack/free-ports.ts";
import { checkTools, serverTools } from "./tool-list.ts";
import { toolPath } from "./tools.ts";

const startTimeoutMs = 120_000;
const stopTimeoutMs = 15_000;
const pollIntervalMs = 250;
const callTimeoutMs = 60_000;

/** A running API server. */
export interface ApiServer {
  /** Runs kubectl as its administrator; `failure` is what it said when it failed or warned. */
  kubectl(args: readonly string[], input?: string): { readonly failure: string | undefined };
}

/** Starts an API server, hands it to `use`, and ends it. Throws StartError when it can't be started. */
export async function withApiServer<T>(use: (server: ApiServer) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "api-server-"));
  const children: ChildProcess[] = [];
  try {
    return await use(await start(folder, children));
  } finally {
    await Promise.all(children.reverse().map(end));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function start(folder: string, children: ChildProcess[]): Promise<ApiServer> {
  if (runProgram("etcd", ["--version"], { timeoutMs: callTimeoutMs }).error !== undefined) {
    throw new StartError("etcd is missing: install it (on Debian the package etcd-server)");
  }
  const [client = 0, peer = 0, secure = 0] = await freePorts(3);
  const etcdUrl = `http://127.0.0.1:${client}`;
  children.push(launch("etcd", etcdArguments(folder, etcdUrl, `http://127.0.0.1:${peer}`), folder));
  const token = randomBytes(24).toString("hex");
  const apiServer = toolPath(serverTools.apiServer);
  children.push(launch(apiServer, serverArguments(folder, etcdUrl, secure, token), folder));
  const address = `https://127.0.0.1:${secure}`;
  const access = [`--server=${address}`, `--token=${token}`, `--cache-dir=${join(folder, "cache")}`];
  const trust = `--certificate-authority=${join(folder, "certificates", "apiserver.crt")}`;
  const kubectl = (args: readonly string[], input = "") => {
    const run = runProgram(toolPath(checkTools.kubectl), [...access, trust, ...args], {
      env: { PATH: process.env.PATH, KUBECONFIG: join(folder, "none") },
      input,
      timeoutMs: callTimeoutMs,
    });
    const failed = run.error !== undefined || run.status !== 0;
    return { failure: failed ? run.stderr || "kubectl did not end" : undefined };
  };
  await untilReady(kubectl, children, folder);
  return { kubectl };
}

async function untilReady(
  kubectl: ApiServer["kubectl"],
  children: readonly ChildProcess[],
  folder: string,
): Promise<void> {
  const deadline = AbortSignal.timeout(startTimeoutMs);
  while (kubectl(["get", "--raw", "/readyz"]).failure !== undefined) {
    const ended = children.some(({ exitCode }) => exitCode !== null);
    if (ended || deadline.aborted) {
      const log = readFileSync(join(folder, "log"), "utf8").trim().split("\n").slice(-5).join("\n");
      throw new StartError(`the API server ${ended ? "ended" : "is not ready"}:\n${log}`);
    }
    await delay(pollIntervalMs);
  }
}

function launch(program: string, args: readonly string[], folder: string): ChildProcess {
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const keep = (chunk: Buffer) => writeFileSync(join(folder, "log"), chunk, { flag: "a" });
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
  await exit;
  clearTimeout(timer);
}

function etcdArguments(folder: string, clientUrl: string, peerUrl: string): string[] {
  return [
    ...["--name=one", `--data-dir=${join(folder, "etcd")}`, "--unsafe-no-fsync"],
    ...[`--listen-client-urls=${clientUrl}`, `--advertise-client-urls=${clientUrl}`],
    ...[`--listen-peer-urls=${peerUrl}`, `--initial-advertise-peer-urls=${peerUrl}`],
    `--initial-cluster=one=${peerUrl}`,
  ];
}

function serverArguments(folder: string, etcdUrl: string, port: number, token: string): string[] {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const [signingKey, checkingKey] = [join(folder, "accounts.key"), join(folder, "accounts.pub")];
  writeFileSync(signingKey, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  writeFileSync(checkingKey, publicKey.export({ type: "spki", format: "pem" }));
  const tokens = join(folder, "tokens.csv");
  writeFileSync(tokens, `${token},check,check,system:masters\n`, { mode: 0o600 });
  return [
    ...[`--etcd-servers=${etcdUrl}`, `--cert-dir=${join(folder, "certificates")}`],
    ...[`--secure-port=${port}`, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"],
    ...[`--service-account-key-file=${checkingKey}`, `--service-account-signing-key-file=${signingKey}`],
    ...["--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24"],
    ...[`--token-auth-file=${tokens}`, "--authorization-mode=Node,RBAC", "--allow-privileged=false"],
  ];
}
