import type { Interceptor } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { isPeerAway, nodeCodeOf } from "../runtime/peer-away.ts";

/**
 * Of PostgreSQL (its appendix A) the classes 08 connection exception and 53 insufficient resources, 57P01–57P03
 * shutting down or starting, 57014 statement timeout, 25P03 idle transaction timeout, 55P03 lock timeout and
 * 40P01 deadlock.
 */
const awayCodes = /^(08...|53...|57P0[123]|57014|25P03|55P03|40P01)$/;
/** Of pg, whose own failures carry no code. */
const awayMessages = /^(timeout exceeded when trying to connect|Connection terminated)/;
/** Of PostgreSQL, the classes 22 data exception and 23 integrity constraint violation. */
const dataFaultCodes = /^2[23]...$/;

/** Server side: a database that is away or overloaded is `service_unavailable`, as a later try may succeed. */
export const translateDatabaseErrors: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (thrown) {
    if (!isDatabaseAway(thrown)) throw thrown;
    throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "the database is away", { cause: thrown });
  }
};

/** Whether a statement failed because the database is away or overloaded. */
export function isDatabaseAway(thrown: unknown): boolean {
  if (thrown instanceof DomainError || !(thrown instanceof Error)) return false;
  return awayCodes.test(nodeCodeOf(thrown) ?? "") || isPeerAway(thrown) || awayMessages.test(thrown.message);
}

/** Whether a statement failed because of the values it was given: the same ones will never do. */
export function isDataFault(thrown: unknown): boolean {
  return dataFaultCodes.test(nodeCodeOf(thrown) ?? "");
}
