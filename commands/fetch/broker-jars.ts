/**
 * The Kafka broker that tests run: its Java archives, in a folder outside of the repository.
 *
 * - A folder that exists under its final name is whole: it is filled and summed up under another name and then renamed.
 * - SHA256SUMS names every file of the folder; what it does not fit is fetched anew.
 */
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const kafkaVersion = "4.3.0";
const oldestJava = 17;
const sumsFile = "SHA256SUMS";

/** Something that the machine lacks; the message says in one line what to do. */
export class BrokerFetchError extends Error {
  override readonly name = "BrokerFetchError";
}

/** Where the broker's archives are kept: KAFKA_BROKER_DIR, else a folder of the user's cache. */
export function brokerJarsFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.KAFKA_BROKER_DIR) return env.KAFKA_BROKER_DIR;
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "media-gateway", `kafka-${kafkaVersion}`);
}

/** Whether the folder holds all that was fetched into it; does not read the archives. */
export function hasBrokerJars(folder: string): boolean {
  const names = [...readSums(folder).keys()];
  return names.length > 0 && names.every((name) => existsSync(join(folder, name)));
}

/** Why this machine's Java can't run the broker, in one line; undefined when it can. */
function javaProblem(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { error, status, stderr } = runQuietly(javaProgram(env), ["-version"], env);
  if (error !== undefined || status !== 0) return `Java ${oldestJava} or newer is missing`;
  const [, major] = /version "(?:1\.)?(\d+)/.exec(stderr) ?? [];
  if (major !== undefined && Number(major) < oldestJava) return `Java ${major} is older than ${oldestJava}`;
  return undefined;
}

/** The Java to run: that of JAVA_HOME, else the one on the path. */
export function javaProgram(env: NodeJS.ProcessEnv = process.env): string {
  return env.JAVA_HOME ? join(env.JAVA_HOME, "bin", "java") : "java";
}

/**
 * Fetches the archives by Maven unless they are there and fit their sums; returns whether it fetched. Throws
 * BrokerFetchError when Java, Maven or an archive can't be had.
 */
export function fetchBrokerJars(folder: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const problem = javaProblem(env);
  if (problem !== undefined) throw new BrokerFetchError(`${problem}; the broker needs it`);
  if (fitsSums(folder)) return false;
  const { error, status } = runQuietly("mvn", ["-version"], env);
  if (error !== undefined || status !== 0)
    throw new BrokerFetchError("Maven (mvn) is missing; it fetches the broker");
  const temporary = `${folder}.${randomBytes(6).toString("hex")}`;
  mkdirSync(temporary, { recursive: true });
  try {
    copyDependencies(temporary, env);
    writeFileSync(join(temporary, sumsFile), summary(temporary));
    rmSync(folder, { recursive: true, force: true });
    putInPlace(temporary, folder);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return true;
}

/** Another fetch may have put its own there in the meantime, which is as good. */
function putInPlace(temporary: string, folder: string): void {
  try {
    renameSync(temporary, folder);
  } catch (thrown) {
    if (!fitsSums(folder)) throw thrown;
  }
}

const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>media-gateway</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${kafkaVersion}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`;

/** Maven compares each archive with the checksum that its repository publishes (-C). */
function copyDependencies(folder: string, env: NodeJS.ProcessEnv): void {
  const pom = join(folder, "pom.xml");
  writeFileSync(pom, project);
  const { status, stdout, stderr } = runQuietly(
    "mvn",
    [
      "--batch-mode",
      "--quiet",
      "--strict-checksums",
      ...["--file", pom],
      "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
      "-DincludeScope=runtime",
      `-DoutputDirectory=${folder}`,
    ],
    env,
  );
  rmSync(pom);
  if (status !== 0) throw new BrokerFetchError(`Maven can't fetch the broker:\n${stdout}${stderr}`);
}

function runQuietly(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): SpawnSyncReturns<string> {
  return spawnSync(program, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

function summary(folder: string): string {
  const names = readdirSync(folder).sort();
  return names.map((name) => `${sumOf(join(folder, name))}  ${name}\n`).join("");
}

function sumOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function fitsSums(folder: string): boolean {
  return (
    hasBrokerJars(folder) && [...readSums(folder)].every(([name, sum]) => sumOf(join(folder, name)) === sum)
  );
}

function readSums(folder: string): ReadonlyMap<string, string> {
  if (!existsSync(join(folder, sumsFile))) return new Map();
  const lines = readFileSync(join(folder, sumsFile), "utf8").trim().split("\n");
  return new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]));
}
