import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CatalogFolder, catalogFolder } from "../../test/support/processes/example-catalog.ts";
import { configuredProviders, readOwnKeySlugs } from "../configured.ts";
import { builtInProviders } from "../manifests.ts";
import { builtInCatalogDirectory, createCatalog, loadCatalog, readCatalogFiles } from "./load.ts";
import { ConnectionSchema } from "./provider-schema.ts";

const folders: CatalogFolder[] = [];
afterAll(async () => {
  for (const folder of folders) await folder.remove();
});

const connection = { dialect: "openai", base_url: "http://localhost:8880" };
const model = {
  id: "acme/one",
  permaslug: "acme/one-2025-01-02",
  name: "One",
  description: "Speaks.",
  created: "2025-01-02",
  medium: "speech",
};
const speech = { formats: ["mp3"], sample_rate_hz: 24_000, channels: 1, max_input_characters: 4000 };
const prices = [{ billable: "input_character", usd_per_million: "0" }];
const endpoint = { model: "acme/one", upstream_model: "one", speech, prices };

/** A file of a provider `acme`; JSON is YAML. */
function file(
  more: object = {},
  endpoints: readonly object[] = [endpoint],
  models: readonly object[] = [model],
) {
  return {
    provider: { slug: "acme", name: "Acme", connection: { ...connection, ...more } },
    models,
    endpoints,
  };
}

async function folderOf(files: Readonly<Record<string, object>>): Promise<string> {
  const texts = Object.entries(files).map(([name, content]) => [name, JSON.stringify(content)] as const);
  const folder = await catalogFolder(Object.fromEntries(texts));
  folders.push(folder);
  return folder.path;
}

/** What loading says against a file, without its place; empty where it is taken. */
async function faultOf(content: object, name = "acme.yaml"): Promise<string> {
  const folder = await folderOf({ [name]: content });
  const loading = loadCatalog({ directories: [folder], providerSlugs: ["openai"] });
  const message = await loading.then(
    () => "",
    ({ message }: Error) => message,
  );
  expect(message.split("\n")).toHaveLength(1);
  return message.replaceAll(`${join(folder, name)}: `, "").replace("catalogue: ", "");
}

describe("a provider that a file describes", () => {
  test("may say all there is to say", async () => {
    const everything = {
      auth: { header: "x-key", scheme: "Key" },
      key: "optional",
      headers: { "x-title": "Us" },
      query: { "api-version": "1" },
      paths: { speech: "/say/{model}", generations: "/draw", edits: "/mend", voices: "/voices" },
      edits: "image_url",
      settings: {
        stream: "json",
        audio_field: "audio_data",
        format_names: { pcm: "raw" },
        body: { a: { b: [1] } },
        usage_headers: { input_tokens: "x-in", output_tokens: "x-out", characters: "x-c", cost_usd: "x-d" },
        response_format: "url",
        size_as: "ratio",
        max_response_mib: 10,
      },
      private_address: true,
      base_url: "https://localhost:8443/api",
      ca_file: "/etc/ca.pem",
    };
    expect(await faultOf(file(everything, [{ ...endpoint, settings: everything.settings }]))).toBe("");
  });

  test.for<[string, object, string]>([
    ["another dialect", file({ dialect: "smoke" }), "provider.connection.dialect: must be one of openai"],
    [
      "no URL",
      file({ base_url: "localhost:80" }),
      'provider.connection.base_url: must match pattern "^https?:',
    ],
    [
      "a key in the URL",
      file({ base_url: "http://a:b@c" }),
      "provider.connection.base_url: must match pattern",
    ],
    ["a broken URL", file({ base_url: "http://[" }), "provider.connection.base_url: is no URL"],
    ["an unknown field", file({ api_key: "sk" }), "provider.connection: unknown field api_key"],
    [
      "another auth",
      file({ auth: "digest" }),
      "provider.connection.auth: must be one of bearer, basic, none",
    ],
    [
      "a key without auth",
      file({ auth: "none", key: "optional" }),
      "provider.connection.key: has no meaning without auth",
    ],
    [
      "a header that is no name",
      file({ headers: { "a b": "c" } }),
      "provider.connection.headers: unknown field a b",
    ],
    [
      "a line end in a header",
      file({ headers: { a: "b\nc" } }),
      "provider.connection.headers.a: must match pattern",
    ],
    [
      "the key's header",
      file({ headers: { Authorization: "x" } }),
      "provider.connection.headers.Authorization: is set by the gateway",
    ],
    [
      "the key's own header",
      file({ auth: { header: "X-Key" }, headers: { "x-key": "x" } }),
      "headers.x-key: is set by the gateway",
    ],
    [
      "the length",
      file({ auth: "none", headers: { "content-length": "1" } }),
      "headers.content-length: is set by the gateway",
    ],
    ["authorities without TLS", file({ ca_file: "ca.pem" }), "provider.connection.ca_file: needs https"],
    [
      "a path that is none",
      file({ paths: { speech: "say" } }),
      "provider.connection.paths.speech: must match pattern",
    ],
    [
      "an unknown shape of edits",
      file({ edits: "xml" }),
      "provider.connection.edits: must be one of multipart, image, image_url, input_references",
    ],
    [
      "an unknown stream",
      file({ settings: { stream: "ws" } }),
      "provider.connection.settings.stream: must be one of raw, sse, json",
    ],
    [
      "an endpoint's unknown setting",
      file({}, [{ ...endpoint, settings: { steam: "sse" } }]),
      "endpoints.0.settings: unknown field steam",
    ],
    [
      "voices to be fetched from nowhere",
      file({}, [{ ...endpoint, speech: { ...speech, voices: "fetched" } }]),
      "endpoints.0.speech.voices: to be fetched need provider.connection.paths.voices",
    ],
  ])("may not have %s", async ([, content, fault]) => {
    expect(await faultOf(content)).toContain(fault);
  });

  test("may not have a mask where its edits have none", async () => {
    const image = {
      formats: ["png"],
      sizes: ["64x64"],
      max_n: 1,
      max_prompt_characters: 10,
      max_references: 1,
      mask: true,
    };
    const drawing = {
      model: "acme/one",
      upstream_model: "one",
      image,
      prices: [{ billable: "output_image", unit: "image", usd_per_million: "0" }],
    };
    const models = [{ ...model, medium: "image" }];
    for (const edits of ["image", "input_references"]) {
      expect(await faultOf(file({ edits }, [drawing], models))).toBe(
        `endpoints.0.image.mask: has no place in edits of the shape ${edits}`,
      );
    }
    for (const edits of ["multipart", "image_url"])
      expect(await faultOf(file({ edits }, [drawing], models))).toBe("");
  });

  test("may not take a built-in one's place, nor be named but described", async () => {
    const openai = { ...file(), provider: { ...file().provider, slug: "openai" } };
    expect(await faultOf(openai, "openai.yaml")).toBe(
      "provider.connection: openai is built in: has no place here",
    );
    const { provider, ...rest } = file();
    const undescribed = { ...rest, provider: { slug: provider.slug, name: provider.name } };
    expect(await faultOf(undescribed)).toBe(
      "provider.slug: no provider acme is built in, and the file describes none: connection is missing",
    );
  });

  test("may declare a model as another file does, word for word", async () => {
    const beta = { ...file(), provider: { ...file().provider, slug: "beta" } };
    const load = async (second: object) =>
      await loadCatalog({
        directories: [await folderOf({ "acme.yaml": file(), "beta.yaml": second })],
        providerSlugs: [],
      });
    const offered = (await load(beta)).speechModel("acme/one")?.endpoints;
    expect(offered?.map(({ providerSlug }) => providerSlug)).toEqual(["acme", "beta"]);
    await expect(load({ ...beta, models: [{ ...model, name: "Two" }] })).rejects.toThrow("is declared twice");
    await expect(load({ ...beta, models: [model, model] })).rejects.toThrow("is declared twice");
  });
});

test("docs/providers.md has a row for each field, and for no other", async () => {
  const text = await readFile(new URL("../../docs/providers.md", import.meta.url), "utf8");
  const rows = (section: string) => {
    const [, table = ""] = text.split(`### \`${section}\``);
    return [...(table.split("###")[0] ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name).sort();
  };
  const { settings } = ConnectionSchema.properties;
  expect(rows("connection")).toEqual(Object.keys(ConnectionSchema.properties).sort());
  expect(rows("settings")).toEqual(Object.keys(settings.properties).sort());
});

describe("the examples", () => {
  const directory = join(builtInCatalogDirectory, "examples");
  const builtIn = builtInProviders.map(({ slug }) => slug);

  test("fit beside the built-in catalogue, all of them at once, and none is loaded with it", async () => {
    const files = await readCatalogFiles([builtInCatalogDirectory, directory]);
    const catalog = createCatalog(files, builtIn);
    const slugs = configuredProviders(files.files).map(({ slug }) => slug);
    const names = (await readdir(directory)).filter((name) => name.endsWith(".yaml"));
    const described = names
      .map((name) => name.replace(".yaml", ""))
      .filter((name) => !builtIn.includes(name));
    expect(slugs).toEqual(described.sort());
    expect(catalog.speechModel("hexgrad/kokoro")?.endpoints.map(({ providerSlug }) => providerSlug)).toEqual([
      "kokoro-fastapi",
      "speaches",
    ]);
    expect(configuredProviders((await readCatalogFiles([builtInCatalogDirectory])).files)).toEqual([]);
  });

  test("that need a key take accounts' own, once they are in the operator's directory", async () => {
    const keyed = builtInProviders.filter(({ needsKey }) => needsKey).map(({ slug }) => slug);
    expect(await readOwnKeySlugs(undefined)).toEqual(keyed);
    expect(await readOwnKeySlugs(directory)).toEqual([
      ...keyed,
      ...["azure-openai", "groq", "inworld", "openrouter", "together"],
    ]);
    await expect(readOwnKeySlugs("nowhere")).rejects.toThrow("the directory nowhere can't be read");
  });
});
