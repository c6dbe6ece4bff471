import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { createLog, silentLog } from "../lib/runtime/log.ts";
import { noResultFetches, noResults } from "../test/fakes/no-results.ts";
import type { ImageAdapter, Provider, ProviderManifest, SpeechAdapter } from "./contract.ts";
import { builtInProviders } from "./manifests.ts";
import type { ProviderHttp } from "./provider-http.ts";
import { createProviders, openProviders } from "./registry.ts";

const http: ProviderHttp = { request: () => Promise.reject(new Error("no upstream here")) };
const adapter: SpeechAdapter = { synthesize: () => Promise.reject(new Error("not asked here")) };

/** Manifests that write down what becomes of their providers. */
function observed() {
  const events: string[] = [];
  const manifest = (slug: string, needsKey: boolean, close?: () => Promise<void>): ProviderManifest => ({
    slug,
    defaultBaseUrl: `https://${slug}.example`,
    needsKey,
    create: async (dependencies): Promise<Provider> => {
      events.push(`${slug} made ${dependencies.fetchResult === noResults ? "with" : "without"} what is its`);
      return {
        ...(slug === "mute" ? {} : { speech: adapter }),
        close: async () => {
          events.push(`${slug} closed`);
          await close?.();
        },
      };
    },
  });
  return { events, manifest };
}

describe("createProviders", () => {
  test("makes a provider when it is first asked for, once, and closes what it made", async () => {
    const { events, manifest } = observed();
    const manifests = [manifest("acme", true), manifest("beta", false), manifest("mute", false)];
    const providers = createProviders({
      environment: { ACME_API_KEY: "key" },
      http,
      results: noResultFetches,
      log: silentLog,
      manifests,
    });
    expect(providers.slugs).toEqual(["acme", "beta", "mute"]);
    expect(events).toEqual([]);
    const connection = { baseUrl: "https://acme.example", apiKey: "key" };
    expect(await providers.speech("acme")).toEqual({ adapter, connection });
    expect((await providers.speech("acme")).adapter).toBe(adapter);
    expect(events).toEqual(["acme made with what is its"]);
    await providers.close();
    expect(events).toEqual(["acme made with what is its", "acme closed"]);
  });

  test("has a provider without its key off, and one it does not know", async () => {
    const { events, manifest } = observed();
    const manifests = [manifest("acme", true), manifest("beta", false)];
    const providers = createProviders({
      environment: {},
      http,
      results: noResultFetches,
      log: silentLog,
      manifests,
    });
    expect(["acme", "beta", "gamma"].map((slug) => providers.isOn(slug))).toEqual([false, true, false]);
    await expect(providers.speech("acme")).rejects.toThrow("acme");
    await expect(providers.speech("gamma")).rejects.toThrow("gamma");
    expect(events).toEqual([]);
  });

  test("refuses speech from a provider that has none", async () => {
    const { manifest } = observed();
    const manifests = [manifest("mute", false)];
    const providers = createProviders({
      environment: {},
      http,
      results: noResultFetches,
      log: silentLog,
      manifests,
    });
    await expect(providers.speech("mute")).rejects.toThrow("mute");
  });

  test("gives the image adapter of a provider that draws, and refuses one that does not", async () => {
    const { manifest } = observed();
    const image: ImageAdapter = { generate: () => Promise.reject(new Error("not asked here")) };
    const draws = { ...manifest("acme", false), create: async () => ({ image }) };
    const manifests = [draws, manifest("beta", false), manifest("gamma", true)];
    const providers = createProviders({
      environment: {},
      http,
      results: noResultFetches,
      log: silentLog,
      manifests,
    });
    const connection = { baseUrl: "https://acme.example", apiKey: "" };
    expect(await providers.image("acme")).toEqual({ adapter: image, connection });
    for (const slug of ["beta", "gamma", "delta"]) await expect(providers.image(slug)).rejects.toThrow(slug);
    await expect(providers.speech("acme")).rejects.toThrow("acme");
  });

  test("closes the others when one fails to close, and says so", async () => {
    const { events, manifest } = observed();
    const broken = manifest("acme", false, () => Promise.reject(new Error("stuck")));
    const manifests = [broken, manifest("beta", false)];
    const providers = createProviders({
      environment: {},
      http,
      results: noResultFetches,
      log: silentLog,
      manifests,
    });
    await providers.speech("acme");
    await providers.speech("beta");
    await expect(providers.close()).rejects.toThrow(AggregateError);
    expect(events.slice(2)).toEqual(["acme closed", "beta closed"]);
  });

  test("has the built-in engine on, and without keys and addresses everything else off", async () => {
    const providers = createProviders({ environment: {}, http, results: noResultFetches, log: silentLog });
    const on = providers.slugs.filter((slug) => providers.isOn(slug));
    expect(on).toEqual(
      builtInProviders
        .filter(({ needsKey, needsAddress }) => !needsKey && !needsAddress)
        .map(({ slug }) => slug),
    );
    expect(on).toContain("local");
    await providers.close();
  });
});

test("the operator's catalogue files replace those of the same name that come along", async () => {
  const directory = await mkdtemp(join(tmpdir(), "catalog-"));
  try {
    await writeFile(join(directory, "local.yaml"), "provider: { slug: local, name: Local }");
    const modelsOf = async (catalogDirectory: string | undefined) => {
      const ends: (() => Promise<void>)[] = [];
      const host = { log: silentLog, onStop: (end: () => Promise<void>) => void ends.push(end) };
      const opened = await openProviders(host, { environment: {}, CATALOG_DIR: catalogDirectory });
      for (const end of ends) await end();
      return opened.catalog.speechModels().map(({ id }) => id);
    };
    const builtIn = await modelsOf(undefined);
    expect(builtIn).toContain("local/flite");
    expect(await modelsOf(directory)).toEqual(builtIn.filter((id) => !id.startsWith("local/")));
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("the start says who is on, where redirected, and what has no price, and no secret", async () => {
  const directory = await mkdtemp(join(tmpdir(), "catalog-"));
  try {
    const openai = await readFile(new URL("../catalog/openai.yaml", import.meta.url), "utf8");
    // The last endpoint loses its prices.
    const unpriced = openai.slice(0, openai.lastIndexOf("    price_source:"));
    await writeFile(join(directory, "openai.yaml"), unpriced);
    const lines: Record<string, unknown>[] = [];
    const log = createLog({
      name: "test",
      level: "info",
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    });
    const ends: (() => Promise<void>)[] = [];
    const host = { log, onStop: (end: () => Promise<void>) => void ends.push(end) };
    const environment = {
      OPENAI_API_KEY: "sk-secret",
      OPENAI_BASE_URL: "http://gpu.example:8080/tenant-secret",
    };
    const { catalog } = await openProviders(host, { environment, CATALOG_DIR: directory });
    for (const end of ends) await end();
    const on = lines.filter(({ msg }) => msg === "provider is on");
    const modelsOf = (slug: string) =>
      [...catalog.speechModels(), ...catalog.imageModels()].filter(({ endpoints }) =>
        endpoints.some(({ providerSlug }) => providerSlug === slug),
      ).length;
    expect(on).toMatchObject([
      { provider: "local", models: modelsOf("local") },
      { provider: "openai", models: modelsOf("openai"), base_url: "http://gpu.example:8080" },
    ]);
    expect(on[0]).not.toHaveProperty("base_url");
    const without = lines.filter(({ msg }) => String(msg).startsWith("endpoint has no price"));
    expect(without).toContainEqual(
      expect.objectContaining({
        provider: "openai",
        model: expect.stringMatching(/^openai\//),
        endpoint_id: expect.stringMatching(/^[\da-f-]{36}$/),
        msg: "endpoint has no price and serves nobody: set one in prices.yaml",
      }),
    );
    expect(without.length).toBe(catalog.unpriced.length);
    expect(JSON.stringify(lines)).not.toContain("secret");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("every provider that has a folder is built in, once, under its folder's name", () => {
  const folders = globSync("*/index.ts", { cwd: import.meta.dirname }).map((path) => dirname(path));
  expect(folders).toContain("local");
  expect(builtInProviders.map(({ slug }) => slug).sort()).toEqual(folders.sort());
});

test("the list of providers is known without loading what any of them runs on", async () => {
  const list = new URL("manifests.ts", import.meta.url).href;
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { builtInProviders } = await import("${list}");
    console.log(JSON.stringify({ slugs: builtInProviders.map(({ slug }) => slug), loaded }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  const { slugs, loaded } = JSON.parse(stdout) as { slugs: string[]; loaded: string[] };
  expect(slugs).toEqual(builtInProviders.map(({ slug }) => slug));
  const folders = builtInProviders.map(({ slug }) => new URL(`${slug}/index.ts`, import.meta.url).href);
  expect(loaded.sort()).toEqual([list, ...folders].sort());
});
