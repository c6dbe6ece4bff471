import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { kafkaSpec, topicSpec } from "../../lib/events/kafka/kafka-config.ts";
import { type ConfigSpec, databaseUrlVar, readConfig } from "../../lib/runtime/config.ts";
import { type DrainConfig, drainTimeoutMs } from "../../lib/service/service-spec.ts";
import { standaloneSpec } from "../../standalone/config.ts";
import { bundleName, entryPoints } from "../build/entry-points.ts";
import { processNames, processSpecs } from "../stack/processes.ts";
import { listOverlays, manifestsFolder, renderOverlay } from "./render.ts";
import { checkTools } from "./tool-list.ts";
import { missingTools } from "./tools.ts";

type Environment = Record<string, string>;

/** What each process and Job reads. */
const specs: Readonly<Record<string, ConfigSpec>> = {
  ...processSpecs,
  migrate: { DATABASE_URL: databaseUrlVar() },
  topics: { ...kafkaSpec, ...topicSpec },
};
const processes: readonly string[] = processNames;
const jobs = Object.keys(specs).filter((name) => !processes.includes(name));

/** Reads the environment as the process does, which throws for a value that it refuses; Jobs drain nothing. */
function drainMs(name: string, env: Environment): number {
  const config = readConfig(specs[name] ?? {}, env) as object as DrainConfig & { DRAIN_DELAY_MS?: number };
  return jobs.includes(name) ? 0 : (config.DRAIN_DELAY_MS ?? 0) + drainTimeoutMs(config);
}

/** What stands for the value of a Secret. */
const secretValues: Environment = {
  DATABASE_URL: "postgres://user:secret@postgresql.stores:5432/media",
  REDIS_URL: "redis://redis.stores:6379",
  MASTER_KEYS: "2026a:unread",
  KAFKA_USERNAME: "user",
  KAFKA_PASSWORD: "secret",
  BOOTSTRAP_INFERENCE_KEY: "unread",
  BOOTSTRAP_MANAGEMENT_KEY: "unread",
};

interface Container {
  readonly args: readonly string[];
  readonly image: string;
  readonly ports?: readonly { name: string; containerPort: number }[];
  readonly env?: readonly { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string } } }[];
  readonly envFrom?: readonly { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  readonly volumeMounts?: readonly { mountPath: string }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Environment;
  readonly spec: {
    readonly template: {
      readonly spec: { terminationGracePeriodSeconds?: number; containers: readonly [Container] };
    };
    readonly ports?: readonly { port: number }[];
    readonly podSelector?: Selector;
    readonly egress?: readonly { to?: readonly { podSelector?: Selector }[] }[];
    readonly ingress?: readonly { from?: readonly { podSelector?: Selector }[] }[];
  };
}

interface Selector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

/** A Deployment or Job with the variables that its container gets. */
interface Workload {
  readonly name: string;
  readonly container: Container;
  readonly graceMs: number;
  readonly env: Environment;
}

function workloads(manifests: readonly Manifest[]): Workload[] {
  const data = new Map(
    manifests.flatMap(({ kind, metadata, data }) =>
      kind === "ConfigMap" ? [[metadata.name, data ?? {}]] : [],
    ),
  );
  return manifests
    .filter(({ kind }) => kind === "Deployment" || kind === "Job")
    .map(({ metadata: { name }, spec }) => {
      const { terminationGracePeriodSeconds = 30, containers } = spec.template.spec;
      const [container] = containers;
      const maps = (container.envFrom ?? []).flatMap(({ configMapRef }) => configMapRef?.name ?? []);
      const own = (container.env ?? []).map((variable) => {
        const value = variable.value ?? secretValues[variable.name];
        if (value === undefined) throw new Error(`${name}: no stand-in for the secret ${variable.name}`);
        return [variable.name, value];
      });
      const env = Object.assign({}, ...maps.map((map) => data.get(map) ?? {}), Object.fromEntries(own));
      return { name, container, graceMs: terminationGracePeriodSeconds * 1000, env };
    });
}

/** The variables of an `.env` file: those that it sets, and those that it lists behind a `#` with their default. */
function readEnvFile(path: string): { set: Environment; listed: Environment } {
  const lines = readFileSync(path, "utf8").split("\n");
  const variables = (pattern: RegExp) =>
    Object.fromEntries(
      lines.flatMap((line) => {
        const [, name = "", value = ""] = pattern.exec(line) ?? [];
        return name === "" ? [] : [[name, value]];
      }),
    );
  return { set: variables(/^([A-Z_0-9]+)=(.*)$/), listed: variables(/^#([A-Z_0-9]+)=(.*)$/) };
}

const kafkaFile = join(manifestsFolder, "overlays", "local", "connections", "kafka.env");

function folderOf(name: string): string {
  return join(manifestsFolder, jobs.includes(name) ? "setup" : "base", name);
}

function envFilesOf(name: string): string[] {
  const own = join(folderOf(name), "config.env");
  const usesKafka = name !== "gateway" && name !== "migrate";
  return [...(existsSync(own) ? [own] : []), ...(usesKafka ? [kafkaFile] : [])];
}

/** The workloads as the files of `base` and `setup` have them, on the connections of the local overlay. */
function plainWorkloads(): Workload[] {
  const manifests = Object.keys(specs).flatMap((name) => {
    const file = jobs.includes(name) ? "job.yaml" : "deployment.yaml";
    const own = parse(readFileSync(join(folderOf(name), file), "utf8")) as Manifest;
    const config = join(folderOf(name), "config.env");
    const data = existsSync(config) ? readEnvFile(config).set : {};
    return [own, { kind: "ConfigMap", metadata: { name }, data } as Manifest];
  });
  const kafka = {
    kind: "ConfigMap",
    metadata: { name: "kafka" },
    data: readEnvFile(kafkaFile).set,
  } as Manifest;
  return workloads([...manifests, kafka]);
}

function rendered(name: string): Manifest[] {
  const overlay = listOverlays().find((candidate) => candidate.name === name);
  if (overlay === undefined) throw new Error(`no overlay ${name}`);
  return parseAllDocuments(renderOverlay(overlay)).map((document) => document.toJS() as Manifest);
}

const kubectlMissing = missingTools([checkTools.kubectl]).length > 0;
const needsKubectl = "kubectl missing: npm run deploy:fetch";
const sources: readonly [string, boolean, () => Workload[]][] = [
  ["the files of base and setup", false, plainWorkloads],
  ...["local", "production"].map((name): [string, boolean, () => Workload[]] => [
    `the overlay ${name}`,
    true,
    () => workloads([...rendered(`${name}/setup`), ...rendered(name)]),
  ]),
];

describe.for(sources)("%s", ([, isRendered, read]) => {
  let found: readonly Workload[] = [];

  beforeAll(() => {
    if (!isRendered || !kubectlMissing) found = read();
  });

  beforeEach(({ skip }) => skip(isRendered && kubectlMissing, needsKubectl));

  test("have every process and Job", () => {
    expect(new Set(found.map(({ name }) => name))).toEqual(new Set(Object.keys(specs)));
  });

  test("set only variables that the process reads", () => {
    const unread = found.flatMap(({ name, env }) =>
      Object.keys(env).flatMap((variable) => (variable in (specs[name] ?? {}) ? [] : `${name}: ${variable}`)),
    );
    expect(unread).toEqual([]);
  });

  test("set what the process can't do without, and values that it takes", () => {
    for (const { name, env } of found) expect(() => drainMs(name, env), name).not.toThrow();
  });

  test("leave more time to end than draining and flushing take", () => {
    const flushMs = 15_000;
    const short = found.filter(({ name, env, graceMs }) => {
      const neededMs = drainMs(name, env);
      return neededMs > 0 && graceMs < neededMs + flushMs;
    });
    expect(short.map(({ name, graceMs }) => `${name}: ${graceMs} ms`)).toEqual([]);
  });

  test("give every process that shares a variable the same value", () => {
    const own = ["PORT", "SERVICE_KEY_FILE", "DATABASE_URL", "MASTER_KEYS", "DRAIN_TIMEOUT_MS"];
    const values = new Map<string, Set<string>>();
    for (const { name, env } of found.filter((workload) => processes.includes(workload.name))) {
      for (const [variable, spec] of Object.entries(specs[name] ?? {})) {
        const value = env[variable] ?? String((spec as { default?: unknown }).default);
        if (!own.includes(variable)) values.set(variable, (values.get(variable) ?? new Set()).add(value));
      }
    }
    const different = [...values].filter(([, found]) => found.size > 1).map(([variable]) => variable);
    expect(different).toEqual([]);
  });

  test("mount what files are read from, and start what there is on the port that it is told", () => {
    const bundled = entryPoints.map((path) => `dist/${bundleName(path)}`);
    for (const { env, container } of found) {
      const mounts = (container.volumeMounts ?? []).map(({ mountPath }) => `${mountPath}/`);
      const files = Object.entries(env).filter(([variable]) => variable.endsWith("_FILE"));
      for (const [, path] of files)
        expect(
          mounts.some((mount) => path.startsWith(mount)),
          path,
        ).toBe(true);
      expect(bundled).toContain(container.args.join());
      const port = container.ports?.find((candidate) => candidate.name === "http")?.containerPort;
      expect(String(port)).toBe(env.PORT ?? "undefined");
      const metrics = container.ports?.find((candidate) => candidate.name === "metrics")?.containerPort;
      expect(String(metrics)).toBe(env.METRICS_PORT ?? "undefined");
    }
  });
});

describe("the lists of variables", () => {
  test.for(Object.keys(specs))("of %s name everything that it reads, each with its default", (name) => {
    const files = envFilesOf(name).map(readEnvFile);
    const listed: Environment = Object.assign({}, ...files.map((file) => file.listed));
    const set = plainWorkloads().find((workload) => workload.name === name)?.env ?? {};
    const spec = Object.entries(specs[name] ?? {});
    const unnamed = spec.filter(([variable]) => !(variable in set) && !(variable in listed));
    expect(unnamed.map(([variable]) => variable)).toEqual([]);
    const wrong = Object.entries(listed).filter(([variable, value]) => {
      const { default: holds } = (specs[name]?.[variable] ?? { default: "no such variable" }) as {
        default?: unknown;
      };
      return value !== (Array.isArray(holds) ? holds.join() : String(holds ?? ""));
    });
    expect(wrong).toEqual([]);
  });
});

describe("the overlay production", () => {
  let manifests: readonly Manifest[] = [];
  let setup: readonly Manifest[] = [];

  beforeAll(() => {
    if (kubectlMissing) return;
    manifests = rendered("production");
    setup = rendered("production/setup");
  });

  beforeEach(({ skip }) => skip(kubectlMissing, needsKubectl));

  test("holds no Secret, and gives every key to one kind of process alone", () => {
    expect(manifests.filter(({ kind }) => kind === "Secret")).toEqual([]);
    const users = workloads(manifests).flatMap(({ name, container }) => [
      ...(container.env ?? []).map(({ valueFrom }) => [valueFrom?.secretKeyRef.name, name]),
      ...(container.envFrom ?? []).map(({ secretRef }) => [secretRef?.name, name]),
    ]);
    const shared = users.filter(([secret]) => !["kafka", "redis", "providers", undefined].includes(secret));
    expect(shared.filter(([secret, name]) => secret?.startsWith(`${name}-`) !== true)).toEqual([
      ["first-account", "account"],
      ["first-account", "account"],
    ]);
    expect(users.flatMap(([secret, name]) => (secret === "providers" ? [name] : []))).toEqual([
      "image",
      "speech",
    ]);
  });

  test("runs the release that the package is", () => {
    const { version } = JSON.parse(readFileSync(join(manifestsFolder, "../../package.json"), "utf8"));
    const images = [...setup, ...manifests].flatMap((manifest) =>
      ["Deployment", "Job"].includes(manifest.kind) ? manifest.spec.template.spec.containers[0].image : [],
    );
    expect(new Set(images)).toEqual(new Set([`registry.example.com/media-gateway:${version}`]));
  });

  test("opens its networks to exactly the calls that the environment asks for", () => {
    const called = workloads(manifests).flatMap(({ name, env }) =>
      Object.entries(env).flatMap(([variable, value]) => {
        if (!variable.endsWith("_URL") || !value.startsWith("http:")) return [];
        const { hostname, port } = new URL(value);
        const service = manifests.find(
          ({ kind, metadata }) => kind === "Service" && metadata.name === hostname,
        );
        expect(
          service?.spec.ports?.map((entry) => String(entry.port)),
          value,
        ).toContain(port);
        return [`${name} -> ${hostname}`];
      }),
    );
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    const peers = (rules: readonly { podSelector?: Selector }[] = []) =>
      rules.flatMap(({ podSelector }) => podSelector?.matchLabels["app.kubernetes.io/name"] ?? []);
    const edges = (direction: "egress" | "ingress") =>
      policies.flatMap(({ metadata: { name }, spec }) =>
        direction === "egress"
          ? peers(spec.egress?.flatMap(({ to = [] }) => to)).map((peer) => `${name} -> ${peer}`)
          : peers(spec.ingress?.flatMap(({ from = [] }) => from)).map((peer) => `${peer} -> ${name}`),
      );
    expect(new Set(called).size).toBeGreaterThan(5);
    expect(edges("egress").sort()).toEqual(called.sort());
    expect(edges("ingress").sort()).toEqual(called.sort());
  });
});

test("the documentation names every variable", () => {
  const documented = readFileSync(join(import.meta.dirname, "..", "..", "docs", "configuration.md"), "utf8");
  const variables = [standaloneSpec, ...Object.values(specs)].flatMap((spec) => Object.keys(spec));
  expect(variables.filter((variable) => !documented.includes(`\`${variable}\``))).toEqual([]);
});

test("every process and Job has a folder, and no folder is without one", () => {
  const folders = ["base", "setup"].flatMap((parent) =>
    readdirSync(join(manifestsFolder, parent), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? entry.name : [],
    ),
  );
  expect(new Set(folders)).toEqual(new Set(Object.keys(specs)));
});
