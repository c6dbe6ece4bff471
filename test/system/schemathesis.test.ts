import { afterAll, beforeAll, expect, test } from "vitest";
import { needPythonClients, runPythonClient } from "../contract/python-client.ts";
import { apiOperations } from "../support/api-operations.ts";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";

interface Refusal {
  readonly error: {
    readonly metadata: {
      readonly reason: string;
      readonly issues?: readonly { readonly path: string; readonly message: string }[];
    };
  };
}

interface Outcome {
  /** Such as `post /keys`. */
  readonly operation: string;
  /** How many answers had each status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly refused: readonly Refusal[];
}

/** What no schema can tell and descriptions do: the fault's operation, path and message, and why it may be. */
const rules: readonly (readonly [issue: RegExp, reason: string])[] = [
  [/^\S+ \S+ {2}must not have more than 1024 members and items/, "of a body as a whole"],
  [/^post \/images\S* background transparent needs/, "between background and output_format"],
  [/^post \/images resolution (is another tier than|does not match) size/, "between size and resolution"],
  [/^post \/images aspect_ratio /, "between size and aspect_ratio"],
  [/^post \/images\S* (input_references|images|image|mask)\b/, "what a URL names must be an image"],
  [/^post \/(images|audio)\S* trace must not contain U\+0000/, "a text at any depth"],
  [/^post \/audio\/speech body nothing_to_speak/, "what can be spoken is up to the model"],
  [/^get \/activity date must/, "the window moves"],
  [/^get \/(activity|generations) user_id is only for organization/, "between the account and the query"],
  [/^get \/activity\/series (from|to) must (lie|not lie|be) /, "between from, to and step, and time moves"],
  [/^get \/(generations|credits\/ledger) cursor must come from the page before/, "a cursor is an answer's"],
  [/^post \/keys (scopes|limit|rate_limit_per_minute) .*(management|inference)/, "between these and kind"],
  [/^post \/keys creator_user_id must be empty on a personal/, "between the account and the body"],
  [/^(post|patch) \/keys\S* expires_at must lie/, "time moves"],
  [/^(post|patch) \/keys\S* rate_limit_per_minute must not be more/, "the operator's ceiling"],
  [/^(post|patch) \/keys\S* limit must not have more than 9/, "decimals of a binary fraction"],
  [
    /^(post|patch) \/observability\/destinations\S* filter_rules\.\S+\.(operator|value) must/,
    "between a rule's field, operator and value",
  ],
];

let stack: TestStandalone;

beforeAll(async () => {
  stack = await startTestStandalone();
});

afterAll(() => stack.close());

async function create(path: string, body: object): Promise<{ id: string; hash: string }> {
  const response = await fetch(`${stack.baseUrl}/api/v1${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${stack.managementKey}`, "content-type": "application/json" },
  });
  expect(response.status, path).toBe(201);
  return ((await response.json()) as { data: { id: string; hash: string } }).data;
}

/** What takes the place of generated values, which name nothing that is there. */
async function fixedValues() {
  const destination = { type: "webhook", config: { url: "https://receiver.example.com/events" } };
  const destinations = "/observability/destinations";
  const { id } = await create(destinations, { ...destination, name: "a" });
  const { hash } = await create("/keys", { name: "a" });
  const byok = await create("/byok", { provider: "openai", key: "k" });
  return {
    "post /audio/speech": { body: { model: "local/flite", voice: "slt" } },
    "patch /keys/{hash}": { path: { hash } },
    "post /byok": { body: { provider: "openai" } },
    "patch /byok/{id}": { path: { id: byok.id } },
    [`post ${destinations}`]: { body: destination },
    [`patch ${destinations}/{id}`]: { path: { id }, body: { config: destination.config } },
    [`get ${destinations}/{id}/deliveries`]: { path: { id } },
  };
}

test("what the document calls valid is refused by the rules between fields alone", {
  timeout: 150_000,
}, async (context) => {
  needPythonClients(context);
  const baseUrl = `${stack.baseUrl}/api/v1`;
  const outcomes = await runPythonClient<Outcome[]>("schemathesis_cases.py", {
    baseUrl,
    document: await (await fetch(`${baseUrl}/openapi.json`)).json(),
    seed: 7,
    examples: 30,
    keys: { "/audio": stack.inferenceKey, "/images": stack.inferenceKey, "": stack.managementKey },
    fixed: await fixedValues(),
  });
  expect(outcomes.map(({ operation }) => operation)).toEqual(apiOperations);
  const issues = outcomes.flatMap(({ operation, refused }) =>
    refused.flatMap(({ error: { metadata } }) =>
      (metadata.issues ?? [{ path: "body", message: metadata.reason }]).map(
        ({ path, message }) => `${operation} ${path} ${message}`,
      ),
    ),
  );
  const lies = new Set(issues.filter((issue) => !rules.some(([rule]) => rule.test(issue))));
  expect([...lies]).toEqual([]);
  const statuses = new Set(outcomes.flatMap((outcome) => Object.keys(outcome.statuses)));
  expect(statuses).not.toContain("500");
});
