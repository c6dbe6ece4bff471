import { parseRetryAfterMs } from "../../../lib/http/retry-after.ts";
import { DeliveryError, type ReceiverAnswer } from "./contract.ts";

interface AnswerCheck {
  /** Wall clock, Unix milliseconds: what a date in `retry-after` is compared with. */
  readonly nowMs: number;
  /** What a type can read out of its receiver's own error bodies; undefined where they say nothing more. */
  readonly explain?: (answer: ReceiverAnswer) => string | undefined;
}

/** Throws DeliveryError unless the status is 2xx and the body is no web page, which no receiver of ours answers with. */
export function checkAnswer(answer: ReceiverAnswer, { nowMs, explain }: AnswerCheck): void {
  const { status, headers } = answer;
  const isTaken = status >= 200 && status < 300;
  if (isTaken && !isWebPage(answer)) return;
  const message = isTaken ? webPage : (explain?.(answer) ?? messageOfStatus(status));
  throw answerError(message, answer, parseRetryAfterMs(headers, nowMs));
}

/** An error about an answer, with its status; the receiver's words are the cause. */
export function answerError(message: string, answer: ReceiverAnswer, retryAfterMs?: number): DeliveryError {
  return new DeliveryError(message, {
    status: answer.status,
    cause: textOf(answer),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** An answer's body as UTF-8 text. */
export function textOf({ body }: ReceiverAnswer): string {
  return new TextDecoder().decode(body);
}

const webPage = "the address answers with a web page";

const messages: ReadonlyMap<number, string> = new Map([
  [400, "the receiver could not read what was sent"],
  [401, "the receiver does not accept the credentials"],
  [403, "the receiver does not accept the credentials, or they may not do this"],
  [404, "there is nothing at this address"],
  [405, "the address does not take this method"],
  [408, "the receiver says that it took too long"],
  [410, "the address is gone for good"],
  [413, "the receiver finds the batch too large"],
  [415, "the receiver does not take this format"],
  [429, "the receiver asks to slow down"],
  [502, "the receiver is not reachable behind its own proxy"],
  [503, "the receiver is not available now"],
  [504, "the receiver is too slow behind its own proxy"],
]);

function messageOfStatus(status: number): string {
  const message = messages.get(status);
  if (message !== undefined) return message;
  if (status < 400) return "the address redirects to another one; enter that one";
  return status < 500 ? "the receiver refuses what was sent" : "the receiver failed";
}

/** By the body, since many a program calls an empty answer `text/html`. */
function isWebPage(answer: ReceiverAnswer): boolean {
  return /^\s*<(!doctype\s+html|html)[\s>]/i.test(textOf(answer));
}
