import { expect, test } from "vitest";
import { webSocketsOnlyTo } from "./network/key-hosts.ts";

test("websockets reach the base URL's origin and the hosts named, over TLS, and nothing else", async () => {
  const reached: string[] = [];
  const open = webSocketsOnlyTo(
    async ({ url }) => {
      reached.push(url);
      return { closed: Promise.resolve(), close: () => undefined };
    },
    "http://127.0.0.1:8188/comfy",
    ["sister.example"],
  );
  const listen = (url: string) =>
    open({
      url,
      headers: {},
      signal: new AbortController().signal,
      maxMessageBytes: 1,
      onMessage: () => undefined,
    });
  const allowed = ["http://127.0.0.1:8188/ws", "https://eu.sister.example/ws"];
  for (const url of allowed) await listen(url);
  const refused = ["http://127.0.0.1:8189/ws", "https://127.0.0.1:8188/ws", "http://eu.sister.example/ws"];
  for (const url of refused) await expect(listen(url)).rejects.toMatchObject({ kind: "connect" });
  expect(reached).toEqual(allowed);
});
