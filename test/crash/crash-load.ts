/** Clients of a crash test: a bounded number at a time, each of which sends one request, once. */
import { RetryPause } from "../../lib/events/retry-pause.ts";
import type { CrashStack, Side } from "./crash-stack.ts";
import { type CrashRequest, crashRequest } from "./crash-traffic.ts";

/**
 * How a request ended for its client: with a whole answer of 200, with an error, with an answer that broke off, without
 * any since nobody listened, or since the client left.
 */
export type ClientResult = "whole" | "refused" | "cut" | "unreached" | "left";

/** What a client knows of its request. Monotonic milliseconds. */
export interface ClientOutcome {
  readonly request: CrashRequest;
  readonly startedMs: number;
  endedMs: number;
  result: ClientResult;
  /** Of an error. */
  status: number;
  reason: string;
  /** Whether the error names attempts, which only a service does that has ended the request. */
  namesAttempts: boolean;
}

/** How a load is made. */
export interface CrashLoadOptions {
  readonly stack: CrashStack;
  /** Begins every tag. */
  readonly name: string;
  readonly requests: number;
  /** Clients on each side. */
  readonly clients: number;
}

/**
 * How long a client waits before its next request when a service was away or too slow, milliseconds: twice as long each
 * time, so that a long absence does not use the requests up.
 */
const firstPauseMs = 500;
const longestPauseMs = 4000;

/** A load that runs until all its requests have ended. */
export class CrashLoad {
  readonly outcomes = new Map<string, ClientOutcome>();
  readonly #options: CrashLoadOptions;
  readonly #begun = new Map<Side, number>();
  readonly #answering = new Map<Side, number>();
  #ended = 0;
  #whole = 0;
  #durationMs = 0;

  constructor(options: CrashLoadOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** How many requests have ended. */
  get ended(): number {
    return this.#ended;
  }

  /** How many of those with a whole answer. */
  get whole(): number {
    return this.#whole;
  }

  /** How long it ran, once it has ended. */
  get durationMs(): number {
    return this.#durationMs;
  }

  /** How many clients of a side have the beginning of their answer and not its end. */
  answering(side: Side): number {
    return this.#answering.get(side) ?? 0;
  }

  /** Resolves when every request has ended. */
  async run(): Promise<void> {
    const { stack, clients } = this.#options;
    const startedMs = performance.now();
    await Promise.all(
      stack.sides.flatMap((side) => Array.from({ length: clients }, () => this.#serve(side))),
    );
    this.#durationMs = performance.now() - startedMs;
  }

  /** One client after another, until the side's requests are used up. */
  async #serve(side: Side): Promise<void> {
    const { stack, name, requests } = this.#options;
    const { sides, accounts } = stack;
    const pause = new RetryPause(firstPauseMs, longestPauseMs);
    for (;;) {
      const turn = this.#begun.get(side) ?? 0;
      const index = turn * sides.length + sides.indexOf(side);
      if (index >= requests) return;
      this.#begun.set(side, turn + 1);
      const outcome = await this.#ask(crashRequest(name, index, sides, accounts.length));
      if (isDiscouraging(outcome)) await pause.wait();
      else pause.reset();
    }
  }

  async #ask(request: CrashRequest): Promise<ClientOutcome> {
    const outcome: ClientOutcome = {
      request,
      startedMs: performance.now(),
      endedMs: Number.POSITIVE_INFINITY,
      result: "unreached",
      status: 0,
      reason: "",
      namesAttempts: false,
    };
    this.outcomes.set(request.tag, outcome);
    const leaving = new AbortController();
    try {
      await this.#exchange(request, outcome, leaving);
    } catch {
      // `result` says how far it came.
    }
    if (leaving.signal.aborted && outcome.result !== "whole") outcome.result = "left";
    outcome.endedMs = performance.now();
    this.#ended += 1;
    if (outcome.result === "whole") this.#whole += 1;
    return outcome;
  }

  async #exchange(request: CrashRequest, outcome: ClientOutcome, leaving: AbortController): Promise<void> {
    const { stack } = this.#options;
    const { side, path, body, account, leaves } = request;
    if (leaves === "early") setTimeout(() => leaving.abort(), leavingMs(request));
    const answer = await fetch(`${stack.restUrl(side)}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${stack.accounts[account]?.key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
    outcome.result = "cut";
    outcome.status = answer.status;
    if (answer.status !== 200) {
      Object.assign(outcome, readError(await answer.text()));
      return;
    }
    this.#answering.set(side, this.answering(side) + 1);
    try {
      if (leaves === "midway") setTimeout(() => leaving.abort(), leavingMs(request));
      const text = Buffer.from(await answer.arrayBuffer());
      Object.assign(outcome, endOfAnswer(answer, text));
    } finally {
      this.#answering.set(side, this.answering(side) - 1);
    }
  }
}

/** Whether a service was away, or had too much to do. */
function isDiscouraging({ result, status }: ClientOutcome): boolean {
  return result === "unreached" || status === 500 || status === 503 || status === 524;
}

/** Different for each request, so that clients leave at every step. */
function leavingMs({ tag }: CrashRequest): number {
  return 1 + ((Number(tag.slice(-4)) * 7) % 60);
}

type AnswerEnd = Pick<ClientOutcome, "result" | "reason" | "namesAttempts">;

function endOfAnswer(answer: Response, text: Buffer): Partial<AnswerEnd> {
  const isEvents = answer.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  const failure = isEvents ? /^data: (\{"type":"error".*)$/m.exec(text.toString("latin1"))?.[1] : undefined;
  return failure === undefined ? { result: "whole" } : readError(failure);
}

function readError(text: string): AnswerEnd {
  const { error } = JSON.parse(text) as { error: { metadata: { reason: string; attempts?: unknown[] } } };
  const { reason, attempts } = error.metadata;
  return { result: "refused", reason, namesAttempts: attempts !== undefined };
}
