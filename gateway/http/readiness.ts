import { sendJson } from "./answer.ts";
import type { Route } from "./route.ts";

/**
 * `/readyz`: 200 while the gateway may be sent requests, 503 from the moment it drains. It asks nobody else: routes
 * need different services, and one that is away must not take the others' routes with it; those that need it answer 503
 * themselves, in the words of the interface. `/healthz` says that the process lives, draining or not.
 */
export function readinessRoute(isDraining: () => boolean): Route {
  return {
    method: "GET",
    path: "/readyz",
    operation: "unrouted",
    access: "open",
    handle: (exchange) =>
      isDraining()
        ? sendJson(exchange, 503, { status: "not ready", problems: ["draining"] })
        : sendJson(exchange, 200, { status: "ready" }),
  };
}
