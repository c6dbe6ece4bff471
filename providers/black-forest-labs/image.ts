/**
 * Black Forest Labs' API: a task is submitted, asked after at the address that the answer names until it is ready, and its
 * image fetched from where it lies then, for ten minutes. docs.bfl.ai, "Generating images"; help.bfl.ai, "Why did my request
 * fail?" (2026-06).
 *
 * - The address to ask is on any of the vendor's hosts and gets the key; the image's gets none.
 * - Nothing cancels a task: who leaves ends the questions.
 * - Its cost stands in the answer to the submission, and may stand in the last one, which holds then.
 */
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  type ProviderDependencies,
  ProviderError,
} from "../contract.ts";
import type { ProviderHttpRequest } from "../provider-http.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { type ErrorMeanings, isRecord } from "../upstream/failure.ts";
import { imageOutput } from "../upstream/image-answer.ts";
import { Base64Text, jsonBody } from "../upstream/json-body.ts";
import { type PollPace, poll } from "../upstream/poll.ts";
import { readJsonObject, send } from "../upstream/send.ts";
import { untilLeft } from "../upstream/until-left.ts";

/** What the adapter is made of. */
export interface TaskOptions extends ProviderDependencies {
  /** How often a task is asked after; usual ones are done in two to twenty seconds. */
  readonly pace?: PollPace;
}

const usualPace: PollPace = { firstMs: 500, mostMs: 2_000 };
const answerTimeoutMs = 30_000;
const maxAnswerBytes = 1024 * 1024;
const maxImageBytes = 64 * 1024 * 1024;
const creditsPerUsd = 100;
/** More than any model takes: all that a task could start from by a passthrough option. */
const mostInputImages = 10;

const meanings: ErrorMeanings = new Map([["task not found", "upstream"]]);

type Answer = Readonly<Record<string, unknown>>;

/** Makes the adapter. */
export function createImageAdapter(options: TaskOptions): ImageAdapter {
  return {
    async generate(call, context) {
      const left = new AbortController();
      const task = new Task(options, call, {
        ...context,
        signal: AbortSignal.any([context.signal, left.signal]),
      });
      const pollingUrl = await task.submit();
      return {
        output: untilLeft(task.draw(pollingUrl), { cancel: () => left.abort() }),
        report: () => (task.credits === undefined ? undefined : { costUsd: task.credits / creditsPerUsd }),
      };
    },
  };
}

class Task {
  /** What the vendor charges, as far as it has said. */
  credits: number | undefined;
  readonly #options: TaskOptions;
  readonly #call: ImageCall;
  readonly #context: AttemptContext;

  constructor(options: TaskOptions, call: ImageCall, context: AttemptContext) {
    this.#options = options;
    this.#call = call;
    this.#context = context;
  }

  /** Resolves with the address to ask at. */
  async submit(): Promise<string> {
    const { connection, onSent } = this.#context;
    const { polling_url: url, cost } = await this.#request({
      method: "POST",
      url: endpointUrl(connection.baseUrl, `/v1/${encodeURIComponent(this.#call.upstreamModel)}`),
      body: jsonBody(bodyOf(this.#call)),
      onSent,
    });
    this.#hear(cost);
    if (typeof url !== "string") throw unexpected("The upstream's answer names no address to ask at.");
    return url;
  }

  async *draw(pollingUrl: string): AsyncGenerator<ImageOutput, void> {
    const { signal } = this.#context;
    const { fetchResult, pace = usualPace } = this.#options;
    const ask = () => this.#request({ method: "GET", url: pollingUrl });
    const url = await poll(ask, (answer) => this.#resultOf(answer), signal, pace);
    yield imageOutput(await fetchResult({ url, signal, maxBytes: maxImageBytes }));
  }

  /** The image's address, or undefined while there is none. */
  #resultOf({ status, state, cost, result }: Answer): string | undefined {
    const at = status ?? state;
    if (typeof at !== "string") throw unexpected("The upstream's answer names no state of the task.");
    if (/moderated/i.test(at)) {
      throw new ProviderError("content_policy", "The upstream refuses by its policy.", { cause: at });
    }
    if (/^(error|failed|task not found)$/i.test(at)) {
      throw new ProviderError("upstream", "The upstream could not finish the task.", { cause: at });
    }
    if (at !== "Ready") return undefined;
    const made = isRecord(result) ? result : {};
    this.#hear(cost ?? made.cost);
    if (typeof made.sample !== "string") throw unexpected("The upstream's answer names no image.");
    return made.sample;
  }

  #hear(cost: unknown): void {
    if (typeof cost === "number") this.credits = cost;
  }

  async #request(request: Pick<ProviderHttpRequest, "method" | "url" | "body" | "onSent">): Promise<Answer> {
    const { connection, signal } = this.#context;
    const headers = { "x-key": connection.apiKey, accept: "application/json" };
    const response = await send(
      this.#options.http,
      {
        ...request,
        headers: request.method === "GET" ? headers : { ...headers, "content-type": "application/json" },
        signal,
        headersTimeoutMs: answerTimeoutMs,
        idleTimeoutMs: answerTimeoutMs,
      },
      { secrets: [connection.apiKey, this.#call.prompt], meanings },
    );
    return await readJsonObject(response, signal, maxAnswerBytes);
  }
}

/** What stays undefined is not sent, and an option can't stand in for it. */
function bodyOf({ options, prompt, size, seed, format, references }: ImageCall): Answer {
  const images = Array.from({ length: mostInputImages }, (_, index) => {
    const reference = references[index];
    const name = index === 0 ? "input_image" : `input_image_${index + 1}`;
    return [name, reference && new Base64Text(reference.bytes)] as const;
  });
  return {
    ...options,
    prompt,
    width: size?.width,
    height: size?.height,
    aspect_ratio: undefined,
    seed,
    output_format: format,
    image_prompt: undefined,
    webhook_url: undefined,
    webhook_secret: undefined,
    ...Object.fromEntries(images),
  };
}

function unexpected(message: string): ProviderError {
  return new ProviderError("bad_answer", message, { status: 200 });
}
