import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { draw, eventsOf, type ImageFlow, imagesOf, startImageFlow } from "../support/processes/image-flow.ts";
import { type BodySchema, valuesOf } from "../support/schema-arbitrary.ts";
import { errorOf } from "../support/services/gateway-server.ts";

const runs = 200;
/** How long an answer may take; far longer than any of these needs. */
const hangMs = 60_000;
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

let flow: ImageFlow;

beforeAll(async () => {
  flow = await startImageFlow("in one process", {
    env: { RATE_LIMIT_PER_MINUTE: "100000", BOOTSTRAP_CREDIT_USD: "1000000" },
    // Two of many say as much about the others as all of them.
    upstream: { behaveImage: ({ n }) => ({ kind: "image", count: Math.min(n, 2) }) },
  });
}, 120_000);

afterAll(() => flow?.[Symbol.asyncDispose]());

/** Bodies as the published document describes them, in one of which in two some members are something else. */
async function bodies() {
  const response = await fetch(`${flow.restUrl}/openapi.json`);
  const document = (await response.json()) as { components: { schemas: Record<string, BodySchema> } };
  const schema = document.components.schemas.ImagesRequest;
  if (schema?.properties === undefined) throw new Error("the document has no ImagesRequest");
  const some = <T>(...values: T[]) => fc.constantFrom(...values);
  const slugs = some("openai", "local", "nobody");
  const right = valuesOf(schema, {
    model: some(
      "openai/gpt-image-2.5-flare",
      "openai/gpt-image-1.5",
      "local/postcard",
      "local/painter",
      "a/b",
    ),
    "input_references.*.image_url.url": some(
      ...[
        `data:image/png;base64,${pixel}`,
        "data:image/png;base64,AAAA",
        "data:,",
        "http://127.0.0.1:9/a.png",
      ],
    ),
    size: fc.oneof(some("512", "1K", "2K", "1024x1024", "1536x1024"), valuesOf(schema.properties.size ?? {})),
    "provider.order.*": slugs,
    "provider.only.*": slugs,
    "provider.ignore.*": slugs,
    "provider.options": fc.dictionary(slugs, fc.dictionary(fc.string(), fc.jsonValue())),
    trace: fc.dictionary(fc.string(), fc.jsonValue()),
  }) as fc.Arbitrary<Record<string, unknown>>;
  const names = Object.keys(schema.properties);
  const wrong = fc.dictionary(some(...names, "other"), fc.jsonValue(), { maxKeys: 2 });
  return fc.oneof(
    right,
    fc.tuple(right, wrong).map((pair) => Object.assign({}, ...pair) as (typeof pair)[0]),
  );
}

test("whatever a body holds is drawn or refused by the rules, in time and never as a failure of ours", async () => {
  const seen: Record<number, number> = {};
  const keepsTheRules = async (body: Record<string, unknown>) => {
    // The engine's own pictures are kept small: how large they may be is shown elsewhere.
    const small =
      body.model === "local/painter" ? { size: "96x64", resolution: null, aspect_ratio: null } : {};
    const response = await draw(flow, { ...body, ...small }, { signal: AbortSignal.timeout(hangMs) });
    seen[response.status] = (seen[response.status] ?? 0) + 1;
    if (response.status !== 200) {
      expect([400, 404]).toContain((await errorOf(response)).status);
      return;
    }
    if (response.headers.get("content-type") === "text/event-stream") {
      const events = await Array.fromAsync(eventsOf(response));
      const [done, last] = events.toReversed();
      expect([last?.type, done?.type]).toEqual(["image_generation.completed", "[DONE]"]);
      return;
    }
    const { images } = await imagesOf(response);
    const format = (body.output_format as string | null | undefined) ?? "png";
    const mediaType = format === "svg" ? "image/svg+xml" : `image/${format}`;
    expect(images.map((image) => image.mediaType)).toEqual(images.map(() => mediaType));
    expect(images.length).toBeLessThanOrEqual(Number(body.n ?? 1));
  };
  await fc.assert(fc.asyncProperty(await bodies(), keepsTheRules), { numRuns: runs });
  expect(Object.keys(seen)).toEqual(["200", "400", "404"]);
}, 300_000);
