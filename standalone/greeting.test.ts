import { expect, test } from "vitest";
import { builtInCatalogDirectory, loadCatalog } from "../providers/catalog/load.ts";
import { builtInProviders } from "../providers/manifests.ts";
import { greeting } from "./greeting.ts";

const address = { url: "https://media.test", rpcPort: 8081 };
const keys = { inferenceKey: `sk-${"i".repeat(43)}`, managementKey: `sk-${"m".repeat(43)}` };

test("every start says where everything is", () => {
  for (const shown of [keys, undefined]) {
    const text = greeting({ ...address, keys: shown });
    expect(text).toContain("https://media.test/api/v1");
    expect(text).toContain("8081");
    expect(text).toContain(" https://media.test/docs\n");
    expect(text).toMatch(/^\n.*\n\n$/s);
  }
});

test("the first start shows both keys, and any other one none", () => {
  const first = greeting({ ...address, keys });
  expect(first).toContain(`inference   ${keys.inferenceKey}\n`);
  expect(first).toContain(`management  ${keys.managementKey}\n`);
  expect(greeting({ ...address, keys: undefined })).not.toContain("sk-");
});

test("a key that was given is not shown", () => {
  const one = greeting({ ...address, keys: { ...keys, inferenceKey: undefined } });
  expect(one).toContain(`One key, shown this once:\n  management  ${keys.managementKey}\n`);
  expect(one).toContain("  export MEDIA_KEY=$BOOTSTRAP_INFERENCE_KEY\n");
  const none = greeting({ ...address, keys: { inferenceKey: undefined, managementKey: undefined } });
  for (const text of [one, none]) expect(text).not.toContain(keys.inferenceKey);
  expect(none).not.toContain("sk-");
});

test("the line to paste is a request that this product can serve without any key of a provider", async () => {
  const text = greeting({ ...address, keys });
  const line = /^ +curl (.*)$/m.exec(text)?.[1] ?? "";
  const body = JSON.parse(/-d '([^']+)'/.exec(line)?.[1] ?? "") as { model: string; input: string };
  const catalog = await loadCatalog({
    directories: [builtInCatalogDirectory],
    providerSlugs: builtInProviders.map(({ slug }) => slug),
  });
  const [endpoint] = catalog.speechModel(body.model)?.endpoints ?? [];
  const needsKey = builtInProviders.find(({ slug }) => slug === endpoint?.providerSlug)?.needsKey;
  expect([needsKey, typeof endpoint?.speech.defaultVoice]).toEqual([false, "string"]);
  expect(body.input.length).toBeGreaterThan(0);
});

test("the link that signs in is shown where there is a code, and the console's address where there is none", () => {
  const shown = greeting({ ...address, keys, hasConsole: true, code: "c0de" });
  expect(shown).toContain(" https://media.test/#/link/c0de\n");
  expect(greeting({ ...address, keys, hasConsole: true })).toContain("The console: https://media.test/\n");
  expect(greeting({ ...address, keys })).not.toContain("console");
});
