/**
 * A job of fal's queue (fal.ai/docs, "Asynchronous inference", "Model errors", "Request errors"): submitted, asked after until
 * it is completed, and its result read from where the submission's answer says.
 *
 * 1. A submission that is out is not broken off: it takes a moment, and a job whose address nobody reads can't be cancelled.
 *    Who leaves meanwhile leaves at once; the job is cancelled as soon as it has an address.
 * 2. Until it is completed, whatever ends it here (the signal, the consumer, a failure) cancels it there, once.
 * 3. The vendor's own retries are off: the router knows other endpoints.
 * 4. What a job makes lies at public addresses: it is to be deleted there after an hour.
 */
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { type AttemptContext, type ProviderDependencies, ProviderError } from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest } from "../provider-http.ts";
import { type ErrorMeanings, errorFromEvent, errorFromTransport } from "../upstream/failure.ts";
import { type PollPace, poll } from "../upstream/poll.ts";
import { type Failures, readJsonObject, send } from "../upstream/send.ts";

/** What both adapters are made of. */
export interface JobOptions extends ProviderDependencies {
  /** How often a job is asked after; quick ones are done in a second. */
  readonly pace?: PollPace;
}

/** What to submit. */
export interface JobRequest {
  /** The path of an app, such as `fal-ai/flux/schnell`. */
  readonly app: string;
  readonly input: Answer;
  /** The caller's text, which no error may show. */
  readonly text: string;
}

type Answer = Readonly<Record<string, unknown>>;

const usualPace: PollPace = { firstMs: 250, mostMs: 2_000 };
const answerTimeoutMs = 30_000;
const maxAnswerBytes = 1024 * 1024;
const resultLifetime = { expiration_duration_seconds: 3_600 };

/** Types of faults and of failed requests that say more than their status. */
const meanings: ErrorMeanings = new Map([
  ["downstream_service_error", "upstream"],
  ["downstream_service_unavailable", "upstream"],
  ["no_media_generated", "upstream"],
  ["generation_timeout", "timeout"],
  ["request_timeout", "timeout"],
  ["startup_timeout", "timeout"],
  ["runner_scheduling_failure", "overloaded"],
  ["runner_connection_timeout", "upstream"],
  ["runner_disconnected", "upstream"],
  ["runner_connection_refused", "upstream"],
  ["runner_connection_error", "upstream"],
  ["runner_incomplete_response", "upstream"],
  ["runner_server_error", "upstream"],
  ["client_disconnected", "upstream"],
  ["client_cancelled", "upstream"],
  ["internal_error", "upstream"],
  ["bad_request", "invalid_request"],
]);

/** Submits a job; resolves once the queue has it. Throws ProviderError. */
export async function submitJob(
  options: JobOptions,
  request: JobRequest,
  context: AttemptContext,
): Promise<Job> {
  const { signal, onSent } = context;
  if (signal.aborted) throw left(signal);
  const unsent = new AbortController();
  let isOut = false;
  const submitted = submit(options, request, {
    ...context,
    signal: AbortSignal.any([unsent.signal, AbortSignal.timeout(answerTimeoutMs)]),
    onSent: () => {
      isOut = true;
      onSent();
    },
  }).then((submission) => new Job(submission, signal));
  const { promise: leaving, reject: leave } = Promise.withResolvers<never>();
  const onAbort = () => {
    leave(left(signal));
    if (!isOut) unsent.abort();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([submitted, leaving]);
  } catch (error) {
    submitted.then(
      (job) => job.cancel(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function left(signal: AbortSignal): ProviderError {
  return errorFromTransport(new OutboundHttpError("aborted", signal.reason), signal);
}

/** What a queue answered a submission, and how often to ask after it. */
interface Submission {
  readonly queue: Queue;
  readonly answer: Answer;
  readonly pace: PollPace;
}

async function submit(
  { http, pace = usualPace }: JobOptions,
  { app, input, text }: JobRequest,
  { connection, signal, onSent }: AttemptContext,
): Promise<Submission> {
  const queue = new Queue(http, connection.apiKey, { secrets: [connection.apiKey, text], meanings });
  const url = `${connection.baseUrl}/${app}`;
  const submission = { method: "POST" as const, url, body: JSON.stringify(input), signal, onSent };
  const answer = await queue.request(submission, {
    "content-type": "application/json",
    "x-fal-no-retry": "1",
    "x-fal-object-lifecycle-preference": JSON.stringify(resultLifetime),
  });
  return { queue, answer, pace };
}

/** A job that the queue has. */
export class Job {
  /** Fires when the job's attempt is over or left. */
  readonly signal: AbortSignal;
  readonly #queue: Queue;
  readonly #pace: PollPace;
  readonly #urls: { readonly status: string; readonly response: string; readonly cancel: string };
  readonly #attempt: AbortSignal;
  readonly #left = new AbortController();
  /** Nothing is left to cancel. */
  #isOver = false;

  /** Throws ProviderError where the answer lacks an address. */
  constructor({ queue, answer, pace }: Submission, attempt: AbortSignal) {
    this.#queue = queue;
    this.#pace = pace;
    this.#attempt = attempt;
    this.signal = AbortSignal.any([attempt, this.#left.signal]);
    this.#urls = {
      status: addressOf(answer.status_url),
      response: addressOf(answer.response_url),
      cancel: addressOf(answer.cancel_url),
    };
    attempt.addEventListener("abort", this.cancel, { once: true });
  }

  /** Resolves with what the app answers, once it does. Throws ProviderError. */
  async result(): Promise<Answer> {
    try {
      const status = await poll(
        () => this.#get(this.#urls.status),
        (answer) => this.#completed(answer),
        this.signal,
        this.#pace,
      );
      const answer = await this.#get(this.#urls.response);
      // The result tells its failure better, by its status, where it has one.
      if (typeof status.error === "string" && status.error !== "") throw this.#failureOf(status);
      return answer;
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  /** Ends it, here at once and there as soon as may be. */
  readonly cancel = (): void => {
    this.#left.abort();
    if (this.#isOver) return;
    this.#end();
    const signal = AbortSignal.timeout(answerTimeoutMs);
    // It ends by itself where this fails.
    this.#queue.request({ method: "PUT", url: this.#urls.cancel, signal }).catch(() => undefined);
  };

  #end(): void {
    this.#isOver = true;
    this.#attempt.removeEventListener("abort", this.cancel);
  }

  #get(url: string): Promise<Answer> {
    return this.#queue.request({ method: "GET", url, signal: this.signal });
  }

  #completed(answer: Answer): Answer | undefined {
    if (answer.status === "IN_QUEUE" || answer.status === "IN_PROGRESS") return undefined;
    this.#end();
    if (answer.status === "COMPLETED") return answer;
    throw this.#failureOf(answer);
  }

  #failureOf(answer: Answer): ProviderError {
    return errorFromEvent(answer, this.#queue.failures.secrets, meanings);
  }
}

/** Requests of one job, all with the key. */
class Queue {
  readonly failures: Failures;
  readonly #http: ProviderHttp;
  readonly #authorization: string;

  constructor(http: ProviderHttp, apiKey: string, failures: Failures) {
    this.failures = failures;
    this.#http = http;
    this.#authorization = `Key ${apiKey}`;
  }

  /** 202 is the answer of a job that is not completed. */
  async request(
    request: Omit<ProviderHttpRequest, "headers">,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const { signal } = request;
    const all = {
      ...request,
      headers: { authorization: this.#authorization, accept: "application/json", ...headers },
      headersTimeoutMs: answerTimeoutMs,
      idleTimeoutMs: answerTimeoutMs,
    };
    const response = await send(this.#http, all, this.failures, [202]);
    return await readJsonObject(response, signal, maxAnswerBytes);
  }
}

function addressOf(url: unknown): string {
  if (typeof url === "string") return url;
  throw new ProviderError("bad_answer", "The upstream's answer names no address of the job.", {
    status: 200,
  });
}
