import { expect, test } from "vitest";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { EndpointHealth } from "./endpoint-health.ts";
import { providerStates } from "./provider-states.ts";

test("who has no model with a price is told of, with none", async () => {
  const priced = { id: "one", providerSlug: "acme", providerName: "Acme" };
  const states = await providerStates([{ id: "acme/voice", endpoints: [priced] }], {
    providers: {
      operatorKeys: () => 1,
      takesOwnKeys: () => true,
      switchVariable: (slug) => `${slug.toUpperCase()}_API_KEY`,
    },
    health: new EndpointHealth({ clock: new ManualClock() }),
    unpriced: [priced, { providerSlug: "zenith", providerName: "Zenith" }],
    ownKeys: async () => new Map(),
  });
  expect(states.map(({ slug, name, on, models }) => ({ slug, name, on, models }))).toEqual([
    { slug: "acme", name: "Acme", on: true, models: 1 },
    { slug: "zenith", name: "Zenith", on: true, models: 0 },
  ]);
});
