import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../lib/runtime/config.ts";
import type { ProviderManifest } from "../../contract.ts";
import { keyVariable, readConnections, switchVariable } from "./connections.ts";

const manifest = (slug: string, part: Partial<ProviderManifest> = {}): ProviderManifest => ({
  slug,
  defaultBaseUrl: `https://${slug}.example`,
  needsKey: true,
  create: async () => ({}),
  ...part,
});
const manifests = [
  manifest("acme"),
  manifest("two-words"),
  manifest("engine", { needsKey: false, defaultBaseUrl: "" }),
];

describe("readConnections", () => {
  test.each([{}, { ACME_API_KEY: "" }, { ACME_API_KEY: " \n" }])(
    "a provider that needs a key has none with %j",
    (environment) => {
      expect(Object.fromEntries(readConnections(manifests, environment))).toEqual({
        acme: { baseUrl: "https://acme.example", apiKeys: [] },
        "two-words": { baseUrl: "https://two-words.example", apiKeys: [] },
        engine: { baseUrl: "", apiKeys: [""] },
      });
    },
  );

  test("an address may be set without a key, for the keys of accounts", () => {
    const connections = readConnections(manifests, { ACME_BASE_URL: "http://a" });
    expect(connections.get("acme")).toEqual({ baseUrl: "http://a", redirectedTo: "http://a", apiKeys: [] });
  });

  test("takes the vendor's address unless another is set, and keys without the blanks of a mounted file", () => {
    const connections = readConnections(manifests, {
      ACME_API_KEY: "key-1\n",
      TWO_WORDS_API_KEY: "key-2",
      TWO_WORDS_BASE_URL: "http://127.0.0.1:9/base/",
    });
    expect(connections.get("acme")).toEqual({ baseUrl: "https://acme.example", apiKeys: ["key-1"] });
    expect(connections.get("two-words")).toEqual({
      baseUrl: "http://127.0.0.1:9/base",
      redirectedTo: "http://127.0.0.1:9/base",
      apiKeys: ["key-2"],
    });
  });

  test("takes several keys in their order, each once", () => {
    const connections = readConnections(manifests, { ACME_API_KEY: "key-1, key-2,,key-1 ,key-3\n" });
    expect(connections.get("acme")?.apiKeys).toEqual(["key-1", "key-2", "key-3"]);
  });

  test("gives an engine of this process neither key nor address, whatever is set", () => {
    const connections = readConnections(manifests, { ENGINE_API_KEY: "key", ENGINE_BASE_URL: "http://a" });
    expect(connections.get("engine")).toEqual({ baseUrl: "", apiKeys: [""] });
  });

  test.each([
    [{ ACME_API_KEY: "kéy-1" }, "ACME_API_KEY must be printable ASCII"],
    [{ ACME_API_KEY: "key-1\nX-Other: 1" }, "ACME_API_KEY must be printable ASCII"],
    [{ ACME_API_KEY: "key-0,key-1 key-1" }, "ACME_API_KEY must be printable ASCII"],
    [{ ACME_API_KEY: "key-1", ACME_BASE_URL: "acme.example" }, "ACME_BASE_URL must be an http(s) URL"],
  ])("refuses %j without quoting it", (environment, message) => {
    const refusal = (() => {
      try {
        return readConnections(manifests, environment);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(ConfigError);
    expect((refusal as ConfigError).message).toContain(message);
    expect((refusal as ConfigError).message).not.toMatch(/k.y-1/);
  });

  test("has a server of one's own off until its address is set, and takes a key for it", () => {
    const own = manifest("own-gpu", {
      needsKey: false,
      takesKey: true,
      needsAddress: true,
      defaultBaseUrl: "",
    });
    const connectionIn = (environment: NodeJS.ProcessEnv) =>
      readConnections([own], environment).get("own-gpu");
    expect(connectionIn({ OWN_GPU_API_KEY: "ann:secret" })?.apiKeys).toEqual([]);
    const OWN_GPU_BASE_URL = "http://127.0.0.1:7860/";
    const baseUrl = "http://127.0.0.1:7860";
    expect(connectionIn({ OWN_GPU_BASE_URL })).toEqual({ baseUrl, redirectedTo: baseUrl, apiKeys: [""] });
    const OWN_GPU_API_KEY = "ann:secret";
    expect(connectionIn({ OWN_GPU_BASE_URL, OWN_GPU_API_KEY })).toMatchObject({
      baseUrl,
      apiKeys: ["ann:secret"],
    });
    const switches = ["OWN_GPU_BASE_URL", "ACME_API_KEY", "TWO_WORDS_API_KEY", undefined];
    expect([own, ...manifests].map(switchVariable)).toEqual(switches);
  });

  test("names variables in capitals with underscores", () => {
    expect(keyVariable("two-words")).toBe("TWO_WORDS_API_KEY");
  });
});
