import { sendJson, sendText } from "../http/answer.ts";
import type { Route } from "../http/route.ts";

const creditsPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Credits</title>
<h1>Credits</h1>
<p>Requests on this gateway are paid from your account's credits. Credits are granted by whoever operates the gateway:
ask them to add some to your account, and name the account or the key that you use.</p>
<p>Nothing is charged for a request that is refused for lack of credits.</p>
</html>
`;

/**
 * What needs no key at the root. `/healthz`: the process lives, draining or not. `/readyz`: 200 while it may be sent
 * requests, 503 from the moment it drains; it asks nobody else: routes need different services, and one that is away must
 * not take the others' routes with it. `/credits`: how to get some.
 */
export function rootRoutes(isDraining: () => boolean): readonly Route[] {
  const route = { method: "GET", operation: "unrouted", access: "open" } as const;
  const notReady = { status: "not ready", problems: ["draining"] };
  return [
    { ...route, path: "/healthz", handle: (exchange) => sendJson(exchange, 200, { status: "ok" }) },
    {
      ...route,
      path: "/readyz",
      handle: (exchange) =>
        isDraining() ? sendJson(exchange, 503, notReady) : sendJson(exchange, 200, { status: "ready" }),
    },
    {
      ...route,
      path: "/credits",
      handle: (exchange) =>
        sendText(exchange, 200, creditsPage, { "content-type": "text/html; charset=utf-8" }),
    },
  ];
}
