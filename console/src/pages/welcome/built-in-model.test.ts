import { expect, test } from "vitest";
import { cheapestOf } from "./built-in-model.ts";

const models = [
  { id: "acme/voice" },
  { id: "built-in-two/x" },
  { id: "built-in/one" },
  { id: "built-in/two" },
];

test.for([
  ["of a provider that needs no key", models, ["built-in"], "built-in/one"],
  ["that there is without such a provider", models, [], "acme/voice"],
  ["of none when there is none", [], ["built-in"], undefined],
] as const)("the first model %s is tried", ([, list, free, id]) => {
  expect(cheapestOf(list, free)?.id).toBe(id);
});
