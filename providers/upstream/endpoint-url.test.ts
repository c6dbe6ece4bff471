import { expect, test } from "vitest";
import { endpointUrl } from "./endpoint-url.ts";

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
