/** Clients that ask all the time for all that a gateway has, each one request after another, and count on every answer. */
import { setTimeout as delay } from "node:timers/promises";

/** Whom the clients ask. */
export interface SteadyLoadOptions {
  /** Ends in `/api/v1`. */
  readonly restUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  /** Begins every tag. */
  readonly name: string;
}

/** A request of which a record is kept. */
export interface TaggedAnswer {
  readonly tag: string;
  readonly isWhole: boolean;
}

/** A request that was not answered as it should be. */
export interface Fault {
  readonly path: string;
  /** By performance.now(). */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly text: string;
}

/** How long a client thinks before its next request, milliseconds. */
const thinkingMs = 150;
/** How long any request may take; far more than it does. */
const requestTimeoutMs = 60_000;
const streamBytes = 16_384;

const speechKinds = [
  `[[audio=${streamBytes} chunk=1024 interval=120]]`,
  `[[audio=${streamBytes}]]`,
  `[[audio=${streamBytes} chunk=4096 interval=100]]`,
  `[[audio=${streamBytes} chunk=512 interval=15]]`,
] as const;
const imageKinds = ["[[delay=300]]", ""] as const;
const managementPaths = ["/credits", "/keys", "/activity", "/byok", "/observability/destinations"] as const;
const openPaths = ["/models", "/images/models"] as const;

/** A load that runs until it is told to stop. */
export class SteadyLoad {
  /** Of requests that were paid for. */
  readonly answers: TaggedAnswer[] = [];
  /** What was not as it should be. */
  readonly faults: Fault[] = [];
  readonly #options: SteadyLoadOptions;
  readonly #clients: readonly Promise<void>[];
  #sent = 0;
  #others = 0;
  #stopping = false;

  constructor(options: SteadyLoadOptions) {
    this.#options = options;
    this.#clients = [
      ...speechKinds.map((kind) => this.#repeat(() => this.#speak(kind))),
      ...imageKinds.map((kind) => this.#repeat(() => this.#draw(kind))),
      this.#repeat((turn) =>
        this.#read(managementPaths[turn % managementPaths.length] ?? "", "managementKey"),
      ),
      this.#repeat((turn) => this.#read(openPaths[turn % openPaths.length] ?? "", "inferenceKey")),
    ];
  }

  get name(): string {
    return this.#options.name;
  }

  /** How many requests were answered so far, of either kind. */
  get answered(): number {
    return this.answers.length + this.#others;
  }

  /** Resolves when the requests that run have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
  }

  async #repeat(ask: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = 0; !this.#stopping; turn += 1) {
      await ask(turn);
      await delay(thinkingMs);
    }
  }

  async #speak(kind: string): Promise<void> {
    const body = { model: "openai/tts-1", voice: "alloy", response_format: "pcm" };
    await this.#pay(
      "/audio/speech",
      (tag) => ({ ...body, input: `Tag ${tag}. ${kind}` }),
      (bytes) => {
        return bytes.length === streamBytes;
      },
    );
  }

  async #draw(kind: string): Promise<void> {
    const body = { model: "openai/gpt-image-1.5", quality: "low" };
    await this.#pay(
      "/images",
      (tag) => ({ ...body, prompt: `Tag ${tag}. ${kind}` }),
      (bytes) => {
        return (JSON.parse(bytes.toString()) as { data: object[] }).data.length === 1;
      },
    );
  }

  async #pay(
    path: string,
    bodyOf: (tag: string) => object,
    check: (bytes: Buffer) => boolean,
  ): Promise<void> {
    this.#sent += 1;
    const tag = `${this.#options.name}-${this.#sent}`;
    const isWhole = await this.#ask(tag, path, "inferenceKey", check, { ...bodyOf(tag), session_id: tag });
    this.answers.push({ tag, isWhole });
  }

  async #read(path: string, key: "inferenceKey" | "managementKey"): Promise<void> {
    await this.#ask(path, path, key, (bytes) => "data" in (JSON.parse(bytes.toString()) as object));
    this.#others += 1;
  }

  async #ask(
    what: string,
    path: string,
    key: "inferenceKey" | "managementKey",
    check: (bytes: Buffer) => boolean,
    body?: object,
  ): Promise<boolean> {
    const startedMs = performance.now();
    const fault = (text: string) => {
      this.faults.push({ path, startedMs, endedMs: performance.now(), text: `${what}: ${text}` });
      return false;
    };
    try {
      const response = await fetch(`${this.#options.restUrl}${path}`, {
        headers: { authorization: `Bearer ${this.#options[key]}`, "content-type": "application/json" },
        signal: AbortSignal.timeout(requestTimeoutMs),
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      if (response.status !== 200) return fault(`${response.status} ${bytes.toString().slice(0, 300)}`);
      return check(bytes) || fault(`an answer of ${bytes.length} bytes that is not whole`);
    } catch (thrown) {
      const { message, cause } = thrown as Error;
      return fault(`${message}${cause instanceof Error ? `: ${cause.message}` : ""}`);
    }
  }
}
