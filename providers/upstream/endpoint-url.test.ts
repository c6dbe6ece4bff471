import { expect, test } from "vitest";
import { endpointUrl, pathSegment } from "./endpoint-url.ts";

test.for([
  ["https://api.example", "https://api.example/v1/audio/speech"],
  ["https://api.example/", "https://api.example/v1/audio/speech"],
  ["https://api.example/v1", "https://api.example/v1/audio/speech"],
  ["https://api.example/v1//", "https://api.example/v1/audio/speech"],
  ["https://api.example/openai/v1", "https://api.example/openai/v1/audio/speech"],
  ["https://api.example/openai", "https://api.example/openai/v1/audio/speech"],
  ["https://api.example/av1", "https://api.example/av1/v1/audio/speech"],
])("below %s it is %s", ([base = "", expected]) => {
  expect(endpointUrl(base, "/v1/audio/speech")).toBe(expected);
});

test.for([
  ["a/b?c#d", "a%2Fb%3Fc%23d"],
  ["../v1", "..%2Fv1"],
  ["Ünï %", "%C3%9Cn%C3%AF%20%25"],
])("%s is one segment of a path", ([value = "", segment]) => {
  expect(pathSegment(value)).toBe(segment);
  expect(new URL(`https://api.example/a/${segment}/b`).pathname).toBe(`/a/${segment}/b`);
});

test.for(["", ".", ".."])("%o is none", (value) => {
  expect(() => pathSegment(value)).toThrow(expect.objectContaining({ kind: "invalid_request" }));
});
