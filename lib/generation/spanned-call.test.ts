import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ReservationOutcome, ReservationSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { recordSpans } from "../../test/fakes/recorded-spans.ts";
import { createLocalTransport, createRpcClient } from "../rpc/client.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { silentLog } from "../runtime/log.ts";
import { traceparentHeader } from "../runtime/span.ts";
import { AccountHolds } from "./account-holds.ts";

const reserve = "media.account.v1.AccountInternalService/Reserve";
const reservation = (generationId: string) => create(ReservationSchema, { generationId });

/** Holds at an account that keeps the `traceparent` of each call, and refuses while there is a failure. */
function scene() {
  const heard: (string | null)[] = [];
  const account = { failure: undefined as DomainError | undefined };
  const transport = createLocalTransport((router) =>
    router.service(AccountInternalService, {
      reserve({ reservations }, { requestHeader }) {
        heard.push(requestHeader.get(traceparentHeader));
        if (account.failure !== undefined) throw account.failure.toConnectError();
        return { outcomes: reservations.map(() => ReservationOutcome.GRANTED) };
      },
    }),
  );
  const client = createRpcClient(AccountInternalService, transport);
  return { heard, account, holds: new AccountHolds({ account: client, log: silentLog }), ...recordSpans() };
}

test("a call for several requests is part of the first that is recorded, and linked to the others", async () => {
  const { holds, tracer, ended, heard } = scene();
  const roots = [1, 2].map((number) => tracer.begin(`root ${number}`, "server", undefined));
  await Promise.all([
    holds.reserve(reservation("a")),
    holds.reserve(reservation("b"), roots[0]),
    holds.reserve(reservation("c"), roots[1]),
  ]);
  const [call, ...others] = ended().filter(({ name }) => name === reserve);
  expect(others).toEqual([]);
  const [first, second] = ended().filter(({ name }) => name === "hold credit");
  expect(first?.parentSpanContext?.spanId).toBe(roots[0]?.logFields?.span_id);
  expect(second?.parentSpanContext?.spanId).toBe(roots[1]?.logFields?.span_id);
  expect(call?.parentSpanContext?.spanId).toBe(first?.spanContext().spanId);
  expect(call?.links.map(({ context }) => context.spanId)).toEqual([second?.spanContext().spanId]);
  const { traceId, spanId } = call?.spanContext() ?? {};
  expect(heard).toEqual([`00-${traceId}-${spanId}-01`]);
});

test("a call that no recorded request needs has no span and announces none", async () => {
  const { holds, ended, heard } = scene();
  await holds.reserve(reservation("a"));
  expect(ended()).toEqual([]);
  expect(heard).toEqual([null]);
});

test("a call that fails says why, in its span and in that of the request", async () => {
  const { holds, account, tracer, ended } = scene();
  account.failure = new DomainError(ErrorReason.CALLER_NOT_ALLOWED, "not you");
  const root = tracer.begin("root", "server", undefined);
  await expect(holds.reserve(reservation("a"), root)).rejects.toThrow(DomainError);
  expect(ended().map(({ name, attributes }) => [name, attributes["error.type"]])).toEqual([
    [reserve, "caller_not_allowed"],
    ["hold credit", "caller_not_allowed"],
  ]);
  expect(ended()[0]?.attributes).toMatchObject({
    "rpc.system.name": "connectrpc",
    "rpc.method": reserve,
    "rpc.status_code": "permission_denied",
  });
});
