/**
 * The Kafka broker that tests run: its Java archives. SHA256SUMS names every file of their folder; what it does not fit
 * is fetched anew.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../lib/runtime/start-error.ts";
import { cacheFolder, fillFolder, runProgram } from "./kept-folder.ts";

const kafkaVersion = "4.3.0";
const oldestJava = 17;
const sumsFile = "SHA256SUMS";

/** Where the broker's archives are kept: KAFKA_BROKER_DIR, else a folder of the user's cache. */
export function brokerJarsFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env.KAFKA_BROKER_DIR || cacheFolder(`kafka-${kafkaVersion}`, env);
}

/** Whether the folder holds all that was fetched into it; does not read the archives. */
export function hasBrokerJars(folder: string): boolean {
  const names = [...readSums(folder).keys()];
  return names.length > 0 && names.every((name) => existsSync(join(folder, name)));
}

/** Why this machine's Java can't run the broker, in one line; undefined when it can. */
function javaProblem(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { error, status, stderr } = runProgram(javaProgram(env), ["-version"], { env });
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
 * StartError when Java, Maven or an archive can't be had.
 */
export function fetchBrokerJars(folder: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const problem = javaProblem(env);
  if (problem !== undefined) throw new StartError(`${problem}; the broker needs it`);
  if (fitsSums(folder)) return false;
  const { error, status } = runProgram("mvn", ["-version"], { env });
  if (error !== undefined || status !== 0)
    throw new StartError("Maven (mvn) is missing; it fetches the broker");
  fillFolder(
    folder,
    () => fitsSums(folder),
    (temporary) => {
      mkdirSync(temporary);
      copyDependencies(temporary, env);
      writeFileSync(join(temporary, sumsFile), summary(temporary));
    },
  );
  return true;
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
  const { status, stdout, stderr } = runProgram(
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
    { env },
  );
  rmSync(pom);
  if (status !== 0) throw new StartError(`Maven can't fetch the broker:\n${stdout}${stderr}`);
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
