import { afterAll, beforeAll, expect, test } from "vitest";
import {
  decode,
  draw,
  type ImageFlow,
  imageOf,
  imagesOf,
  leastPicture,
  memoryMib,
  startImageFlow,
} from "../support/processes/image-flow.ts";

const large = 32;
/** How much any process may grow at its peak, MiB: by less than the decoded pixels of all large pictures at once. */
const mostGrowthMib = (large * 2048 ** 2 * 4) / 2 ** 20;

let flow: ImageFlow;

beforeAll(async () => {
  flow = await startImageFlow("as processes", {
    env: { MAX_INFLIGHT_PER_KEY: "1000", RATE_LIMIT_PER_MINUTE: "100000" },
  });
}, 120_000);

afterAll(() => flow?.[Symbol.asyncDispose]());

test("32 pictures of 2K at once are all drawn, within bounded memory", async (context) => {
  context.skip(process.platform !== "linux", "reads memory from /proc");
  const prompts = ["A lighthouse at dusk.", "A fox in the snow.", "A city at night, rain.", "Autumn hills."];
  const idle = peaksMib();
  const drawn = await Promise.all(
    Array.from({ length: large }, async (_, index) => {
      const prompt = prompts[index % prompts.length];
      const output_format = index % 4 === 1 ? "jpeg" : "png";
      return imagesOf(
        await draw(flow, { ...leastPicture, prompt, resolution: "2K", seed: index, output_format }),
      );
    }),
  );
  for (const [name, mib] of Object.entries(peaksMib())) {
    expect(mib - (idle[name] ?? 0), name).toBeLessThan(mostGrowthMib);
  }
  const bytes = drawn.map(({ images }) => images[0]?.bytes ?? Buffer.alloc(0));
  expect(new Set(bytes.map((image) => image.toString("latin1"))).size).toBe(large);
  for (const image of bytes) expect(await decode(image)).toMatchObject({ width: 2048, height: 2048 });
}, 120_000);

test("more than the engine queues is refused with 529, and the engine goes on", async () => {
  const many = 200;
  const answers = await Promise.all(
    Array.from({ length: many }, async (_, seed) => {
      const response = await draw(flow, { ...leastPicture, n: 3, output_format: "svg", seed });
      if (response.status === 200) return (await imagesOf(response)).images.length;
      return {
        status: response.status,
        retryAfter: response.headers.get("retry-after"),
        body: await response.json(),
      };
    }),
  );
  const refused = answers.filter((answer) => typeof answer !== "number");
  expect(answers.filter((answer) => typeof answer === "number" && answer !== 3)).toEqual([]);
  const endpoint = { provider_name: "Local", endpoint_id: expect.any(String) };
  const reason = "provider_overloaded";
  const error = {
    code: 529,
    message: "Provider returned error",
    metadata: {
      reason,
      provider_name: "Local",
      retry_after_s: 2,
      attempts: [{ ...endpoint, status: null, reason }],
    },
  };
  expect(refused).toEqual(refused.map(() => ({ status: 529, retryAfter: "2", body: { error } })));
  // The line has room for 64, and each thread for one.
  expect(many - refused.length).toBeGreaterThanOrEqual(64);
  expect(refused.length).toBeGreaterThan(0);
  await imageOf(await draw(flow, leastPicture));
}, 120_000);

/** The most memory that each process has held. */
function peaksMib(): Record<string, number> {
  return Object.fromEntries(Object.entries(flow.pids).map(([name, pid]) => [name, memoryMib(pid, "VmHWM")]));
}
