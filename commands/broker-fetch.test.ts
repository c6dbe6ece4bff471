import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hasBrokerJars } from "./fetch/broker-jars.ts";

const script = new URL("broker-fetch.ts", import.meta.url).pathname;

let scratch: string;
let folder: string;

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "broker-fetch-"));
  folder = join(scratch, "cache", "kafka");
  await mkdir(join(scratch, "bin"));
});

afterEach(() => rm(scratch, { recursive: true }));

/** Programs stand in for Java and Maven. */
async function install(name: "java" | "mvn", lines: string): Promise<void> {
  const path = join(scratch, "bin", name);
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
}

/** A Maven that "fetches" two archives, and then ends with this code. */
function installMaven(code = 0): Promise<void> {
  return install(
    "mvn",
    `for word; do
      case "$word" in
        -version) exit 0 ;;
        -DoutputDirectory=*) out="\${word#*=}" ;;
      esac
    done
    echo one > "$out/one.jar"
    echo two > "$out/two.jar"
    echo fetched >> "${join(scratch, "fetches")}"
    exit ${code}`,
  );
}

async function fetches(): Promise<number> {
  const text = await readFile(join(scratch, "fetches"), "utf8").catch(() => "");
  return text.split("fetched").length - 1;
}

function fetchBroker() {
  const path = `${join(scratch, "bin")}:/usr/bin:/bin`;
  const env = { PATH: path, KAFKA_BROKER_DIR: folder, JAVA_HOME: "" };
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(process.execPath, [script], { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, out, error });
    });
  });
}

test("the broker is fetched once, and again when a file of it was damaged or lost", async () => {
  await install("java", `echo 'openjdk version "21.0.1"' >&2`);
  await installMaven();
  expect(hasBrokerJars(folder)).toBe(false);
  expect(await fetchBroker()).toEqual({ code: 0, out: `fetched the broker into ${folder}\n`, error: "" });
  expect(hasBrokerJars(folder)).toBe(true);
  expect((await readdir(folder)).sort()).toEqual(["SHA256SUMS", "one.jar", "two.jar"]);
  expect(await fetchBroker()).toEqual({ code: 0, out: `the broker is in ${folder}\n`, error: "" });
  expect(await fetches()).toBe(1);

  await writeFile(join(folder, "two.jar"), "damaged");
  expect(await fetchBroker()).toMatchObject({ code: 0 });
  expect(await readFile(join(folder, "two.jar"), "utf8")).toBe("two\n");
  await rm(join(folder, "one.jar"));
  expect(hasBrokerJars(folder)).toBe(false);
  expect(await fetchBroker()).toMatchObject({ code: 0 });
  expect(hasBrokerJars(folder)).toBe(true);
  expect(await fetches()).toBe(3);
});

test("a fetch that fails half way leaves nothing behind", async () => {
  await install("java", `echo 'openjdk version "17.0.15"' >&2`);
  await installMaven(1);
  const { code, error } = await fetchBroker();
  expect([code, error]).toEqual([1, expect.stringContaining("error: Maven can't fetch the broker")]);
  expect(hasBrokerJars(folder)).toBe(false);
  expect(await readdir(dirname(folder))).toEqual([]);
});

test.for([
  ["", "Java 17 or newer is missing; the broker needs it"],
  [`echo 'openjdk version "11.0.2"' >&2`, "Java 11 is older than 17; the broker needs it"],
  [`echo 'java version "1.8.0_402"' >&2`, "Java 8 is older than 17; the broker needs it"],
] as const)("an unfit Java is named: %s", async ([java, message]) => {
  await install("java", java === "" ? "exit 1" : java);
  await installMaven();
  expect(await fetchBroker()).toEqual({ code: 1, out: "", error: `error: ${message}\n` });
});

test("a missing Maven is named", async () => {
  await install("java", `echo 'openjdk version "17.0.15"' >&2`);
  await install("mvn", "exit 1");
  expect(await fetchBroker()).toEqual({
    code: 1,
    out: "",
    error: "error: Maven (mvn) is missing; it fetches the broker\n",
  });
});
