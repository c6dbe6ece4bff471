import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { reconcileMetrics } from "../../commands/reconcile/metrics.ts";
import { ErrorReason, ErrorReasonSchema } from "../../gen/media/error/v1/error_reason_pb.ts";
import { readText, repositoryRoot } from "../rules/source-files.ts";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { parsePrometheusText, type Series, scrape } from "../support/prometheus-text.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const alerts = parse(readText("deploy/alerts/media-gateway.yaml") ?? "") as {
  groups: readonly { name: string; rules: readonly Rule[] }[];
};
const rules = alerts.groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readText("deploy/dashboards/media-gateway.json") ?? "") as {
  panels: readonly Panel[];
};
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets);
const expressions = [...rules, ...queries].map(({ expr }) => expr);

let stack: TestStandalone;
let told: readonly Series[];

beforeAll(async () => {
  stack = await startTestStandalone({ METRICS_PORT: "0", REDIS_URL: "redis://127.0.0.1:9" });
  const port = await stack.child.listeningPort("metrics");
  const body = { model: "local/flite", voice: "slt", input: "Hello." };
  for (const change of [{}, { model: "acme/unheard-of" }])
    await bytesOf(await speak(stack, stack.inferenceKey, { ...body, ...change }));
  const compared = { holds: 1, records: 1, open: 0, unseen: 0 };
  const reconciled = parsePrometheusText(await reconcileMetrics(compared, 0, Date.now()));
  // The bus has told how many messages wait once the lag of all groups is known.
  const groups = async () =>
    (await scrape(port)).filter(({ name }) => name === "media_gateway_consumer_lag").length;
  await vi.waitFor(async () => expect(await groups()).toBe(3), { timeout: 10_000 });
  told = [...(await scrape(port)), ...reconciled];
});

afterAll(async () => {
  await stack?.close();
});

/** What Prometheus itself adds to what it scrapes. */
const ownMetrics: ReadonlySet<string> = new Set(["up"]);
const ownLabels: ReadonlySet<string> = new Set(["job", "instance"]);
/** Words of PromQL that stand where names of metrics do. */
const notMetrics =
  /^(sum|max|min|by|rate|increase|histogram_quantile|time|and|or|le|humanize\w*|label_values)$/;

/** The metrics that an expression names, each with the labels that it wants of them. */
function metricsOf(expression: string): readonly { name: string; labels: readonly string[] }[] {
  const withoutGroups = expression.replace(/\bby \([^)]*\)/g, "");
  return [...withoutGroups.matchAll(/\b([a-z_][a-z0-9_]*)(?:\{([^}]*)\})?/g)].flatMap(
    ([, name = "", inside = ""]) => {
      if (notMetrics.test(name) || !name.includes("_")) return name === "up" ? [{ name, labels: [] }] : [];
      return [
        { name, labels: [...inside.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label) },
      ];
    },
  );
}

/** Expressions with the texts in them left out, which may look like anything. */
const bare = expressions.map((expression) => expression.replace(/"[^"]*"|\[[^\]]*\]/g, '""'));
const groupings = (expression: string) =>
  [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(",").map((l) => l.trim()),
  );

describe("alerts and dashboard", () => {
  test("name metrics that processes tell, with labels that these have", () => {
    const findings = bare.flatMap((expression) => {
      const named = metricsOf(expression);
      expect(named.length, expression).toBeGreaterThan(0);
      return named.flatMap(({ name, labels }) => {
        if (ownMetrics.has(name)) return [];
        const series = told.filter((one) => one.name === name);
        if (series.length === 0) return [`${name}: nobody tells it`];
        const wanted = [...labels, ...groupings(expression)];
        return wanted
          .filter((label) => !ownLabels.has(label) && !series.some((one) => label in one.labels))
          .map((label) => `${name}: has no label ${label}`);
      });
    });
    expect(findings).toEqual([]);
  });

  test("show every metric that processes tell", () => {
    const shown = new Set(bare.flatMap((expression) => metricsOf(expression).map(({ name }) => name)));
    const base = (name: string) => name.replace(/_(bucket|count|sum)$/, "");
    const shownBases = new Set([...shown].map(base));
    const names = new Set(told.map(({ name }) => base(name)));
    expect([...names].filter((name) => !shownBases.has(name))).toEqual([]);
  });

  test("compare labels with words that these can have", () => {
    const reasons = new Set(
      Object.values(ErrorReason).map((reason) =>
        (ErrorReasonSchema.value[reason]?.localName ?? "").toLowerCase(),
      ),
    );
    const named = expressions.flatMap((expression) =>
      [...expression.matchAll(/\breason=~?"([^"]*)"/g)].flatMap(([, words = ""]) => words.split("|")),
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((word) => !reasons.has(word))).toEqual([]);
    const routes = expressions.flatMap((expression) => [...expression.matchAll(/http_route="([^"]*)"/g)]);
    expect(new Set(routes.map(([, route]) => route))).toEqual(
      new Set(["/api/v1/audio/speech", "/api/v1/images"]),
    );
  });
});

describe("an alert", () => {
  test.for(rules.map((rule) => [rule.alert, rule] as const))("%s says what it is about", ([name, rule]) => {
    expect(name).toMatch(/^MediaGateway[A-Z]\w+$/);
    expect(["critical", "warning", "info"]).toContain(rule.labels.severity);
    expect(rule.annotations.summary).toMatch(/\S/);
    const words = name
      .replace("MediaGateway", "")
      .replace(/(?<=[a-z])(?=[A-Z])/g, "-")
      .toLowerCase();
    expect(rule.annotations.runbook_url).toBe(`docs/operations.md#alert-${words}`);
    // Labels that the text shows are left by the expression.
    const kept = [...groupings(rule.expr), ...ownLabels, "schema"];
    const shown = [...(rule.annotations.summary ?? "").matchAll(/\$labels\.(\w+)/g)].map(
      ([, label]) => label,
    );
    expect(shown.filter((label) => !kept.includes(label ?? ""))).toEqual([]);
  });

  test("has a name of its own", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });
});

test("Prometheus takes the rules, which fire when they should and not otherwise", async (context) => {
  const run = promisify(execFile);
  const isThere = await run("promtool", ["--version"]).then(
    () => true,
    () => false,
  );
  if (!isThere) context.skip("promtool is not on the PATH; Debian has it in the package prometheus");
  const cwd = join(repositoryRoot, "deploy/alerts");
  const [rulesFile, testsFile] = ["media-gateway.yaml", "media-gateway-test.yaml"];
  await run("promtool", ["check", "rules", rulesFile], { cwd, timeout: 30_000 });
  await run("promtool", ["test", "rules", testsFile], { cwd, timeout: 30_000 });
});

test("the dashboard has its rows, and no two panels of one id or title in a row", () => {
  const rows = dashboard.panels.filter(({ type }) => type === "row").map(({ title }) => title);
  expect(rows).toEqual(["Traffic", "Latency", "Upstreams", "Events", "Money", "Destinations", "Processes"]);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});
