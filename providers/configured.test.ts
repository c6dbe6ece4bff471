import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../lib/runtime/log.ts";
import { catalogFolder } from "../test/support/processes/example-catalog.ts";
import { speechOf, startCompatibleServer } from "../test/upstreams/compatible/compatible.ts";
import { compatibleServers } from "../test/upstreams/compatible/compatible-servers.ts";
import type { StandIn } from "../test/upstreams/stand-in/stand-in-server.ts";
import { attempt } from "./adapter.suite.ts";
import type { SpeechCall } from "./contract.ts";
import { type OpenProviders, openProviders } from "./registry.ts";

let upstream: StandIn;
beforeAll(async () => {
  upstream = await startCompatibleServer(compatibleServers["kokoro-fastapi"]);
});
afterAll(() => upstream.close());

const call: SpeechCall = {
  upstreamModel: "kokoro",
  input: "Words.",
  voice: "af_heart",
  format: "mp3",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

/** A process whose only file in CATALOG_DIR describes such a provider, for as long as `body` runs. */
async function withProvider<T>(
  connection: object,
  environment: Record<string, string>,
  body: (opened: OpenProviders) => Promise<T>,
): Promise<T> {
  const described = { dialect: "openai", base_url: upstream.baseUrl, ...connection };
  const content = { provider: { slug: "two-words", name: "Two Words", connection: described } };
  const folder = await catalogFolder({ "two-words.yaml": JSON.stringify(content) });
  const ends: (() => Promise<void>)[] = [];
  const host = { log: silentLog, onStop: (end: () => Promise<void>) => void ends.push(end) };
  try {
    return await body(await openProviders(host, { environment, CATALOG_DIR: folder.path }));
  } finally {
    for (const end of ends) await end();
    await folder.remove();
  }
}

/** What the provider is sent when it speaks; undefined when it can't be reached. */
function spoken({ providers }: OpenProviders) {
  return async () => {
    const { adapter, connection } = await providers.speech("two-words");
    const answer = await adapter.synthesize(call, attempt(connection).context);
    expect(Buffer.concat(await Array.fromAsync(answer.audio)).equals(speechOf.mp3)).toBe(true);
    return upstream.requests.at(-1)?.headers.authorization;
  };
}

describe("a provider that a file describes", () => {
  const open = { private_address: true, auth: "none" };

  test("is on without a key where it needs none, and speaks", async () => {
    await withProvider(open, {}, async (opened) => {
      expect(opened.providers.slugs.at(-1)).toBe("two-words");
      expect(opened.providers.isOn("two-words")).toBe(true);
      expect(opened.providers.takesOwnKeys("two-words")).toBe(false);
      expect(await spoken(opened)()).toBeUndefined();
    });
  });

  test("is off without the key that it needs, and takes accounts' own", async () => {
    await withProvider({ private_address: true }, {}, async ({ providers }) => {
      expect(providers.isOn("two-words")).toBe(false);
      expect(providers.takesOwnKeys("two-words")).toBe(true);
      const own = await providers.speech("two-words", { ownKey: "sk-own" });
      expect(own.connection.apiKey).toBe("sk-own");
    });
  });

  test.for([
    [{}, undefined],
    [{ TWO_WORDS_API_KEY: "sk-two" }, "Bearer sk-two"],
  ] as const)("sends an optional key where there is one: %o", async ([environment, header]) => {
    await withProvider({ private_address: true, key: "optional" }, environment, async (opened) => {
      expect(opened.providers.isOn("two-words")).toBe(true);
      expect(await spoken(opened)()).toBe(header);
    });
  });

  test("is not reached at a private address that its file does not allow, named there or by the environment", async () => {
    const before = upstream.requests.length;
    const refused = { name: "ProviderError", kind: "network" };
    await withProvider({ auth: "none" }, {}, async (opened) => {
      await expect(spoken(opened)()).rejects.toMatchObject(refused);
    });
    const elsewhere = { auth: "none", base_url: "https://api.two-words.example" };
    const environment = { TWO_WORDS_BASE_URL: upstream.baseUrl };
    await withProvider(elsewhere, environment, async (opened) => {
      await expect(spoken(opened)()).rejects.toMatchObject(refused);
    });
    expect(upstream.requests).toHaveLength(before);
    await withProvider({ ...elsewhere, private_address: true }, environment, async (opened) => {
      await spoken(opened)();
    });
    expect(upstream.requests).toHaveLength(before + 1);
  });

  test("lists its voices while it is on", async () => {
    const { signal } = new AbortController();
    const paths = { voices: "/v1/audio/voices" };
    const listed = (more: object) =>
      withProvider({ private_address: true, ...more }, {}, ({ providers }) =>
        providers.voices("two-words", "kokoro", signal),
      );
    expect(await listed({ auth: "none", paths })).toHaveLength(4);
    expect(await listed({ auth: "none" })).toBeUndefined();
    expect(await listed({ paths })).toBeUndefined();
  });
});
