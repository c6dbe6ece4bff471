import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { manifestsFolder } from "../../commands/deploy/render.ts";
import { checkTools, serverTools } from "../../commands/deploy/tool-list.ts";
import { missingTools } from "../../commands/deploy/tools.ts";
import { runProgram } from "../../commands/fetch/kept-folder.ts";

vi.setConfig({ testTimeout: 300_000 });

const script = new URL("../../commands/deploy-check.ts", import.meta.url).pathname;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "deploy-check-"));
});

afterEach(() => rm(folder, { recursive: true }));

function deployCheck(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { env: { ...process.env, ...env } },
      (thrown, out, error) => {
        resolve({ code: thrown?.code ?? 0, out, error });
      },
    );
  });
}

/** A copy of the manifests in which texts are replaced, each of them once: path, old, new. */
async function brokenCopy(edits: readonly (readonly [string, string, string])[]): Promise<string> {
  const copy = join(folder, "kubernetes");
  await cp(manifestsFolder, copy, { recursive: true });
  for (const [path, old, replacement] of edits) {
    const file = join(copy, path);
    const text = await readFile(file, "utf8");
    if (!text.includes(old)) throw new Error(`${path} has no "${old}"`);
    await writeFile(file, text.replace(old, replacement));
  }
  return copy;
}

test("says in one line what is missing and how to get it", async () => {
  const { code, out, error } = await deployCheck([], { DEPLOY_TOOLS_DIR: folder });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(error).toMatch(/^error: kubectl [\d.]+, kubeconform [^\n]* missing: run "npm run deploy:fetch"\n$/);
  const withServer = await deployCheck(["--server"], { DEPLOY_TOOLS_DIR: folder });
  expect(withServer.error).toMatch(
    /kube-apiserver [\d.]+ missing: run "npm run deploy:fetch -- --server"\n$/,
  );
});

describe("with its tools", () => {
  beforeEach(({ skip }) => {
    skip(missingTools(Object.values(checkTools)).length > 0, "tools missing: npm run deploy:fetch");
  });

  test("accepts what is there", async () => {
    const { code, out, error } = await deployCheck([]);
    expect({ code, error }).toEqual({ code: 0, error: "" });
    expect(out).toContain("ok: production: schemas\nok: production: policies\n");
    expect(out).not.toContain("failed");
  });

  test("finds misspelt fields, those of other people's kinds too, and a breach of a policy", async () => {
    const manifests = await brokenCopy([
      ["base/speech/deployment.yaml", "serviceAccountName:", "serviceAcountName:"],
      ["components/monitoring/service-monitors.yaml", "scrapeTimeout:", "scrapeTimeOut:"],
      ["components/workload/container.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"],
    ]);
    const { code, out, error } = await deployCheck(["--manifests", manifests]);
    expect(code).toBe(1);
    expect(out).toContain("failed: production: schemas\nfailed: production: policies\n");
    for (const named of ["serviceAcountName", "scrapeTimeOut", "writable root"])
      expect(error).toContain(named);
  });

  test("says which overlay can't be rendered", async () => {
    const manifests = await brokenCopy([["base/usage/kustomization.yaml", "deployment.yaml", "absent.yaml"]]);
    const { code, error } = await deployCheck(["--manifests", manifests]);
    expect(code).toBe(1);
    expect(error).toMatch(/^error: local can't be rendered:\n.*absent\.yaml/s);
    const nowhere = await deployCheck(["--manifests", folder]);
    expect(nowhere).toEqual({ code: 1, out: "", error: `error: ${folder} has no folder "overlays"\n` });
  });

  test("a real API server finds what no schema tells", async ({ skip }) => {
    skip(
      missingTools(Object.values(serverTools)).length > 0,
      "API server missing: npm run deploy:fetch -- --server",
    );
    skip(runProgram("etcd", ["--version"], { timeoutMs: 10_000 }).error !== undefined, "etcd is missing");
    const manifests = await brokenCopy([
      [
        "base/account/deployment.yaml",
        "- name: service-jwks\n          configMap",
        "- name: other\n          configMap",
      ],
      ["components/workload/container.yaml", "drop: [ALL]", "drop: [NET_RAW]"],
    ]);
    const { code, out, error } = await deployCheck(["--server", "--manifests", manifests]);
    expect(code).toBe(1);
    expect(out).toContain("ok: production: schemas\n");
    expect(out).toContain("ok: production/setup: API server\n");
    expect(out).toContain("failed: production: API server\n");
    expect(error).toContain('Not found: "service-jwks"');
    expect(error).toContain("PodSecurity");
  });
});
