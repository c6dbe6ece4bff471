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

/** The pages at the root that need no key: `/healthz`, whether the process lives, and `/credits`, how to get some. */
export const rootRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/healthz",
    operation: "unrouted",
    access: "open",
    handle: (exchange) => sendJson(exchange, 200, { status: "ok" }),
  },
  {
    method: "GET",
    path: "/credits",
    operation: "unrouted",
    access: "open",
    handle: (exchange) =>
      sendText(exchange, 200, creditsPage, { "content-type": "text/html; charset=utf-8" }),
  },
];
