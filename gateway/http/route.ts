import type { RouteDocument } from "../docs/route-document.ts";
import type { Access } from "./auth.ts";
import type { Operation } from "./error-body.ts";
import type { Exchange } from "./exchange.ts";

/** One route: what to check before it runs, and what it does. */
export interface Route {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Pattern of the path, parameters as `:name`. */
  path: string;
  operation: Operation;
  access: Access;
  /** What the OpenAPI document says of it; routes at the root have none. */
  document?: RouteDocument;
  /** Answers, or throws before the answer has begun or while it runs. */
  handle(exchange: Exchange): Promise<void>;
}

/** A check between privilege and body, such as a rate limit. Throws DomainError to refuse. */
export type Admission = (exchange: Exchange) => Promise<void>;
