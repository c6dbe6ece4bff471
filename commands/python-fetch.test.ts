import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = new URL("python-fetch.ts", import.meta.url).pathname;

let scratch: string;
let folder: string;

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "python-fetch-"));
  folder = join(scratch, "cache", "clients");
  await mkdir(join(scratch, "bin"));
});

afterEach(() => rm(scratch, { recursive: true }));

/** A program in Python's place: it has `venv` or not, and its pip notes what it installs and ends with this code. */
async function installPython({ venv = true, pip = 0 } = {}): Promise<void> {
  const path = join(scratch, "bin", "python3");
  await writeFile(
    path,
    `#!/bin/sh
    case "$2" in
      venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
      pip) for last; do :; done; echo "$last" >> "${join(scratch, "installs")}"; echo "no such package"; exit ${pip} ;;
      *) exit ${venv ? 0 : 1} ;;
    esac\n`,
  );
  await chmod(path, 0o755);
}

async function installs(): Promise<string[]> {
  const text = await readFile(join(scratch, "installs"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

function fetchPython() {
  const env = { PATH: `${join(scratch, "bin")}:/usr/bin:/bin`, PYTHON_CLIENTS_DIR: folder };
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(process.execPath, [script], { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, out, error });
    });
  });
}

test("the clients are fetched once", async () => {
  await installPython();
  const fetched = { code: 0, out: `fetched the Python clients into ${folder}\n`, error: "" };
  expect(await fetchPython()).toEqual(fetched);
  expect(await fetchPython()).toEqual({ code: 0, out: `the Python clients are in ${folder}\n`, error: "" });
  expect(await installs()).toEqual([expect.stringMatching(/test\/contract\/python\/requirements\.txt$/)]);
});

test("a fetch that fails half way says why and leaves nothing behind", async () => {
  await installPython({ pip: 1 });
  const error = "error: the Python clients can't be had:\nno such package\n";
  expect(await fetchPython()).toEqual({ code: 1, out: "", error });
  expect(await readdir(dirname(folder))).toEqual([]);
});

test("a Python without venv is named", async () => {
  await installPython({ venv: false });
  const error = "error: Python 3 with venv (python3-venv) is missing\n";
  expect(await fetchPython()).toEqual({ code: 1, out: "", error });
});
