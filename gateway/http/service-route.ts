import type { CallOptions } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import { type AnswerHeaders, sendJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Route } from "./route.ts";
import { callService, type WireNames } from "./service-call.ts";

/** A route that is one call of a service: how its request is read, which call, and what is answered. */
interface ServiceRoute<Request, Reply>
  extends Pick<Route, "method" | "path">,
    Partial<Pick<Route, "operation" | "access">> {
  /** Says the status of the answer, too. */
  readonly document: RouteDocument;
  /** Reads path, query or body; throws DomainError for what is wrong with them. */
  request(exchange: Exchange): Request | Promise<Request>;
  call(request: Request, options: CallOptions): Promise<Reply>;
  answer(reply: Reply, exchange: Exchange): unknown;
  /** Fields that the service names otherwise than the REST interface. */
  readonly wireNames?: WireNames;
  readonly headers?: AnswerHeaders;
}

/** A route that calls a service and answers with JSON; for management keys unless it says otherwise. */
export function serviceRoute<Request, Reply>({
  request,
  call,
  answer,
  wireNames,
  headers,
  ...route
}: ServiceRoute<Request, Reply>): Route {
  return {
    operation: "management",
    access: "management",
    ...route,
    async handle(exchange) {
      const message = await request(exchange);
      const reply = await callService(exchange, (options) => call(message, options), wireNames);
      await sendJson(exchange, route.document.answer.status ?? 200, answer(reply, exchange), headers);
    },
  };
}

/** The resource that `:id` of the path names. Throws record_unknown, in its `noun`, for what is no UUID. */
export function namedId({ parameters: { id = "" } }: Exchange, noun: string): { readonly id: string } {
  if (!isUuid(id)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, `no such ${noun}`);
  return { id };
}
