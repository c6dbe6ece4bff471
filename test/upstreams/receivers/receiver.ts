/** What all stand-in receivers of events share: they check a request as the real one would, and misbehave when told to. */
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  type StandInOptions,
  startStandIn,
} from "../stand-in/stand-in-server.ts";

/** A whole answer. */
export interface ReceiverAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

/** What happens to a request that the receiver would have taken. */
export type ReceiverBehaviour =
  | ({ readonly kind: "answer" } & ReceiverAnswer)
  /** Announces more of an answer than it sends, then breaks off; of status 200 unless given. */
  | { readonly kind: "cut"; readonly status?: number }
  /** Breaks off without an answer. */
  | { readonly kind: "reset" }
  /** Says nothing. */
  | { readonly kind: "hang" }
  /** Begins an answer and says nothing more. */
  | { readonly kind: "stall" }
  /** Answers with an error and text without end. */
  | { readonly kind: "endless"; readonly status: number };

/** What a receiver makes of a request by itself: `isTaken` says whether it was good. */
export type ReceiverVerdict = ReceiverAnswer & { readonly isTaken: boolean };

/** A running stand-in receiver. */
export interface Receiver extends StandIn {
  /** Queues behaviours for the next good requests, one each. */
  next(...behaviours: ReceiverBehaviour[]): void;
}

/** How a stand-in judges requests. */
export interface ReceiverOptions extends StandInOptions {
  /** What it makes of a request, before any behaviour. */
  judge(request: ReceivedRequest): ReceiverVerdict | Promise<ReceiverVerdict>;
}

/** Starts a receiver on the loopback. */
export async function startReceiver({ judge, ...options }: ReceiverOptions): Promise<Receiver> {
  const queued: ReceiverBehaviour[] = [];
  const standIn = await startStandIn(async (request, answer) => {
    const verdict = await judge(request);
    const behaviour = verdict.isTaken ? queued.shift() : undefined;
    await (behaviour === undefined ? send(answer, verdict) : behave(answer, behaviour));
  }, options);
  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}

/** A refusal in text. */
export function refuse(status: number, body: string, headers: Record<string, string> = {}): ReceiverVerdict {
  return { isTaken: false, status, headers: { "content-type": "text/plain", ...headers }, body };
}

function send(answer: StandInAnswer, { status, headers = {}, body = "" }: ReceiverAnswer): void {
  const hasBody = status !== 204 && status !== 304;
  answer.start(status, hasBody ? { ...headers, "content-length": String(Buffer.byteLength(body)) } : headers);
  answer.end(hasBody ? body : undefined);
}

async function behave(answer: StandInAnswer, behaviour: ReceiverBehaviour): Promise<void> {
  switch (behaviour.kind) {
    case "answer":
      return send(answer, behaviour);
    case "cut":
      answer.start(behaviour.status ?? 200, { "content-length": "100" });
      await answer.write("the beginning");
      return await answer.cut();
    case "reset":
      return await answer.cut("reset");
    case "hang":
      return void (await answer.closed);
    case "stall":
      answer.start(200, { "content-length": "100" });
      return void (await answer.closed);
    case "endless":
      answer.start(behaviour.status, { "content-type": "text/plain" });
      while (!answer.isClosed) await answer.write("x".repeat(16 * 1024));
  }
}
