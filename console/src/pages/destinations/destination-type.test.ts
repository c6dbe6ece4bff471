import { expect, test } from "vitest";
import { configOf, destinationTypes, faultsOf, headersOf, withoutSecrets } from "./destination-type.ts";

const webhook = destinationTypes.find(({ id }) => id === "webhook");
if (webhook === undefined) throw new Error("no webhook");

test("settings are sent as typed, without what is empty or of another type", () => {
  const typed = { url: " https://example.com ", method: "", bucketName: "of-another-type" };
  expect(configOf(webhook, typed, "x-api-key: a:b\n\nX-Other:c ")).toEqual({
    url: "https://example.com",
    headers: { "x-api-key": "a:b", "X-Other": "c" },
  });
  expect(configOf(webhook, typed, " ")).toEqual({ url: "https://example.com" });
});

test("what is missing is told by the field", () => {
  expect(Object.keys(faultsOf(webhook, { url: " " }, "no header"))).toEqual(["url", "headers"]);
  expect(faultsOf(webhook, { url: "https://example.com" }, "")).toEqual({});
  expect(headersOf("a:")).toBeUndefined();
});

test("secrets do not stay", () => {
  const typed = { url: "https://example.com", signingSecret: "whsec_secret" };
  expect(withoutSecrets(webhook, typed)).toEqual({ url: "https://example.com" });
});
