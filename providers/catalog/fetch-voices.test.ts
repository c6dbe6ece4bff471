import { afterEach, expect, test, vi } from "vitest";
import { createLog, silentLog } from "../../lib/runtime/log.ts";
import type { Repeating } from "../../lib/runtime/repeat.ts";
import { type CatalogFolder, catalogFolder } from "../../test/support/processes/example-catalog.ts";
import type { ListedVoice } from "../contract.ts";
import { keepVoices } from "./fetch-voices.ts";
import { loadCatalog } from "./load.ts";

const yaml = `
provider:
  slug: acme
  name: Acme
  connection: { dialect: openai, base_url: "http://localhost", paths: { voices: /voices } }
models:
  - { id: acme/one, permaslug: acme/one-1, name: One, description: One., created: 2025-01-02, medium: speech }
endpoints:
  - model: acme/one
    upstream_model: one-v1
    speech: { formats: [mp3], sample_rate_hz: 24000, channels: 1, voices: fetched, max_input_characters: 10, voice_aliases: { alloy: ann } }
    prices: [{ billable: input_character, usd_per_million: "0" }]
`;

const running: Repeating[] = [];
const folders: CatalogFolder[] = [];
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  for (const folder of folders.splice(0)) await folder.remove();
});

async function open() {
  const folder = await catalogFolder({ "acme.yaml": yaml });
  folders.push(folder);
  const catalog = await loadCatalog({ directories: [folder.path], providerSlugs: [] });
  const offered = catalog.offeredBy(() => true);
  const ids = () => offered.speechModel("acme/one")?.endpoints[0]?.speech.voices.map(({ id }) => id);
  return { catalog, ids };
}

const ann: ListedVoice = { id: "ann", name: "Ann" };
const bob: ListedVoice = { id: "bob", name: "" };

test("voices are asked for again and again; a failure or an empty list leaves the last ones", async () => {
  const { catalog, ids } = await open();
  const answers = [
    () => Promise.reject(new Error("away")),
    async () => [ann],
    () => Promise.reject(new Error("away")),
    async () => [],
    async () => undefined,
    async () => [ann, bob],
  ];
  const seen: unknown[] = [];
  const lines: string[] = [];
  const log = createLog({
    name: "test",
    level: "info",
    destination: { write: (line) => void lines.push(line) },
  });
  const ask = async (slug: string, upstreamModel: string) => {
    expect([slug, upstreamModel]).toEqual(["acme", "one-v1"]);
    seen.push(ids());
    return await (answers[seen.length - 1] ?? answers.at(-1))?.();
  };
  running.push(...keepVoices(catalog, ask, log, 1));
  await vi.waitFor(() => expect(ids()).toEqual(["ann", "bob"]));
  expect(seen.slice(0, 6)).toEqual([[], [], ["ann"], ["ann"], ["ann"], ["ann"]]);
  expect(lines.filter((line) => line.includes("list voices of acme")).length).toBeGreaterThan(0);
});

test("one that does not answer is given up with the process", async () => {
  const { catalog, ids } = await open();
  const asked = Promise.withResolvers<AbortSignal>();
  const ask = (_: string, __: string, signal: AbortSignal) => {
    asked.resolve(signal);
    return new Promise<never>((_resolve, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)),
    );
  };
  const [list] = keepVoices(catalog, ask, silentLog);
  const signal = await asked.promise;
  await list?.stop();
  expect(signal.aborted).toBe(true);
  expect(ids()).toEqual([]);
});
