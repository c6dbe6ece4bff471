/**
 * Writes whole answers and ends broken ones.
 *
 * 1. An answer that goes out before the request's body has arrived closes the connection, and only after the client
 *    had time to read it: closing on unread bytes would reset the connection and take the answer away.
 * 2. An answer that breaks after its first byte never looks complete to the client.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { DomainError } from "../../lib/runtime/domain-error.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { toErrorAnswer } from "./error-body.ts";
import type { Exchange } from "./exchange.ts";

/** How long a connection that is to be closed may take to read what still arrives, or to send what was written. */
const lingerMs = 1000;

/** Headers of an answer. */
export type AnswerHeaders = Readonly<Record<string, string>>;

/** Sends a JSON answer, unless one has begun or the client is gone. */
export async function sendJson(
  exchange: Exchange,
  status: number,
  body: unknown,
  headers: AnswerHeaders = {},
): Promise<void> {
  await sendText(exchange, status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

/** Sends an answer of text or of bytes, unless one has begun or the client is gone. */
export async function sendText(
  exchange: Exchange,
  status: number,
  text: string | Buffer,
  headers: AnswerHeaders,
): Promise<void> {
  // A body that came along with its headers has arrived after this turn.
  if (exchange.bodyIsPending) await nextTurn();
  const { response } = exchange;
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.byteLength(text);
  exchange.bytesSent += bytes;
  const closing = exchange.bodyIsPending;
  if (closing) response.setHeader("connection", "close");
  response.writeHead(status, { ...headers, "content-length": bytes });
  if (!closing) {
    response.end(text);
    return;
  }
  response.write(text);
  endAfterLinger(exchange); // 1.
}

/** Answers with an error; an answer that has begun reports it where its form allows that, and is cut where not. */
export async function sendError(exchange: Exchange, error: DomainError, creditsUrl: string): Promise<void> {
  exchange.reason = wordOfReason(error.reason);
  exchange.generationId ||= error.generationId;
  const { status, headers, body } = toErrorAnswer(error, exchange.operation, creditsUrl);
  if (exchange.response.headersSent) {
    if (!exchange.failInBand?.(body)) cutAnswer(exchange); // 2.
    return;
  }
  await sendJson(exchange, status, body, headers);
}

/** Ends an answer that has begun so that no client can take it for a whole one. */
function cutAnswer({ request, response }: Exchange): void {
  if (response.destroyed) return;
  const { socket } = response;
  if (socket === null) {
    // Behind another answer on its connection: cuts once its turn comes.
    response.destroy();
    return;
  }
  // Over HTTP/1.0 the end of the connection is the end of the answer; only a reset tells them apart.
  if (request.httpVersion === "1.0" && !(socket instanceof TLSSocket)) {
    socket.resetAndDestroy();
    return;
  }
  // What was written still goes out, so that the client gets the headers with the generation's id.
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(timer)).destroySoon();
}

function endAfterLinger({ request, response }: Exchange): void {
  const finish = () => {
    clearTimeout(timer);
    request.off("end", finish).off("close", finish);
    response.end();
  };
  const timer = setTimeout(finish, lingerMs);
  request.once("end", finish).once("close", finish).resume();
}
