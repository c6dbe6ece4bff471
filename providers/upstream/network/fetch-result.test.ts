import { afterAll, beforeAll, expect, test } from "vitest";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import { type StandIn, startStandIn } from "../../../test/upstreams/stand-in/stand-in-server.ts";
import { ProviderError } from "../../contract.ts";
import { createResultFetches } from "./fetch-result.ts";
import { onlyTo } from "./key-hosts.ts";

let provider: StandIn;
let elsewhere: StandIn;
const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));

beforeAll(async () => {
  elsewhere = await startStandIn((_, answer) => answer.send(200, {}, "inside"));
  provider = await startStandIn(({ path }, answer) => {
    if (path === "/away") answer.send(302, { location: `${elsewhere.baseUrl}/inside` }, "");
    else if (path === "/gone") answer.send(410, {}, "");
    else answer.send(200, { "content-type": "image/png" }, "pixels");
  });
});
afterAll(async () => {
  await Promise.all([results.close(), provider.close(), elsewhere.close()]);
});

const { signal } = new AbortController();
const fetch = (url: string, maxBytes = 1000) => results.of(provider.baseUrl)({ url, signal, maxBytes });

test("a result at the provider's own origin is fetched, wherever that is, and without its key", async () => {
  expect(Buffer.from(await fetch(`${provider.baseUrl}/image.png`)).toString()).toBe("pixels");
  expect(provider.requests.at(-1)?.headers).not.toHaveProperty("authorization");
});

test.each<[string, () => string, number | undefined]>([
  ["another private address", () => `${elsewhere.baseUrl}/inside`, undefined],
  ["a redirect from the provider to one", () => `${provider.baseUrl}/away`, undefined],
  ["what is gone", () => `${provider.baseUrl}/gone`, undefined],
  ["what is too large", () => `${provider.baseUrl}/image.png`, 3],
  ["a file", () => "file:///etc/passwd", undefined],
  ["no address", () => "", undefined],
])("%s is not fetched", async (_, url, maxBytes) => {
  const before = elsewhere.requests.length;
  await expect(fetch(url(), maxBytes)).rejects.toBeInstanceOf(ProviderError);
  expect(elsewhere.requests.length).toBe(before);
});

test("a key goes to the base URL's origin and the hosts that are named, over TLS, and nowhere else", async () => {
  const sent: string[] = [];
  const http = onlyTo(
    {
      request: ({ url }) => {
        sent.push(url);
        return Promise.reject(new Error("sent"));
      },
    },
    "https://api.bfl.example/v1",
    ["bfl.example"],
  );
  const ask = (url: string) =>
    http.request({ method: "GET", url, headers: {}, signal }).catch((thrown: Error) => thrown.message);
  for (const url of ["https://api.bfl.example/x", "https://api.eu.bfl.example/x", "https://bfl.example/x"]) {
    expect(await ask(url)).toBe("sent");
  }
  const others = [
    "http://api.eu.bfl.example/x",
    "https://evilbfl.example/x",
    "https://api.bfl.example.evil.example/x",
    "https://api.bfl.example:8443@evil.example/x",
    "http://169.254.169.254/",
  ];
  for (const url of others) expect(await ask(url)).not.toBe("sent");
  expect(sent).toHaveLength(3);
});
