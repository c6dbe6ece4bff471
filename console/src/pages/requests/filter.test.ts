import { expect, test } from "vitest";
import { filterOf, generationQuery } from "./filter.ts";

const now = new Date("2030-01-31T12:00:00Z");

test.for([
  ["", {}],
  ["period=day", { from: "2030-01-30T12:00:00.000Z" }],
  // The bounds of another choice of period don't count.
  ["period=hour&from=2029-01-01T00:00", { from: "2030-01-31T11:00:00.000Z" }],
  ["period=between&from=2029-01-01T00:00&to=x", { from: "2029-01-01T00:00:00.000Z" }],
  ["period=between&to=2029-01-01T08:30", { to: "2029-01-01T08:30:00.000Z" }],
  ["period=ever&outcome=gone", {}],
  [
    "model=a/b&provider=acme&key=ab&outcome=failed&member=m&session=%3Cb%3E",
    {
      model: "a/b",
      provider: "acme",
      api_key_hash: "ab",
      outcome: "failed",
      user_id: "m",
      session_id: "<b>",
    },
  ],
] as const)("the address's %j asks for %j", ([address, asked]) => {
  expect(generationQuery(filterOf(new URLSearchParams(address)), now)).toEqual(asked);
});
