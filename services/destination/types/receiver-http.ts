import {
  createGuardedSend,
  type GuardedSendAnswer,
  type GuardedSendOptions,
} from "../../../lib/http/guarded-send.ts";
import { GuardedSendError, type GuardedSendErrorKind } from "../../../lib/http/guarded-send-error.ts";
import { DeliveryError, type ReceiverHttp } from "./contract.ts";

/** What is kept of a receiver's answer, as the contract says. */
const maxAnswerBytes = 4096;

/** One answer for both: whoever makes destinations shall not learn which names there are inside. */
const notReached = "the name is not known, or its address may not be called";

const messages: Readonly<Record<GuardedSendErrorKind, string>> = {
  url: "the address is not one that may be called",
  address: notReached,
  name: notReached,
  refused: "the connection was refused",
  connect: "no connection could be made",
  certificate: "its TLS certificate is not trusted",
  tls: "it speaks no TLS that we know, or none at all",
  reset: "the connection broke off before the answer was whole",
  protocol: "what answers there does not speak HTTP",
  aborted: "the attempt was ended",
};

/** The way to receivers, with connections of its own; one for a process. Close it when nothing is being delivered. */
export interface OwnedReceiverHttp extends ReceiverHttp {
  close(): Promise<void>;
}

/** Makes it. The guard decides which addresses may be called. */
export function createReceiverHttp(options: Omit<GuardedSendOptions, "maxAnswerBytes">): OwnedReceiverHttp {
  const http = createGuardedSend({ ...options, maxAnswerBytes });
  return {
    async send(request): Promise<GuardedSendAnswer> {
      try {
        return await http.send(request);
      } catch (thrown) {
        throw toDeliveryError(thrown, request.signal);
      }
    },
    close: () => http.close(),
  };
}

function toDeliveryError(thrown: unknown, signal: AbortSignal): DeliveryError {
  const { kind } = GuardedSendError.from(thrown);
  const isLate =
    kind === "aborted" && signal.reason instanceof Error && signal.reason.name === "TimeoutError";
  return new DeliveryError(isLate ? "no answer came in time" : messages[kind], { cause: thrown });
}
