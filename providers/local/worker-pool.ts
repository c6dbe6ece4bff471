/**
 * Owns threads that run tasks of one kind, and the line of tasks that wait for one.
 *
 * 1. Tasks wait here and not in Piscina: ending one of its running tasks ends the thread, which costs more than letting
 *    a task finish.
 * 2. First come, first served, except that a heavy task waits while `maxHeavy` others run: tasks that are not heavy go
 *    before it, and the heavy one goes first once one of those others is done.
 * 3. When its signal fires, a task that waits leaves the line; one that runs keeps its thread until it is done, and its
 *    result is dropped.
 * 4. A task that runs too long loses its thread, as does one that crashes it; another thread takes the place.
 * 5. After close() no thread is left and nothing is taken.
 */
import { Piscina } from "piscina";
import { ProviderError } from "../contract.ts";

/** How large a pool is and what runs in it. */
export interface WorkerPoolOptions<Task> {
  readonly threads: number;
  /** The longest that one task may run, milliseconds. */
  readonly taskTimeoutMs: number;
  /** The module that the threads run. */
  readonly workerUrl: URL;
  /** The name of the function that it exports. */
  readonly workerExport: string;
  /** What the threads are started with, made when the first is needed. */
  workerData?(): Promise<unknown>;
  /** Tasks of which only `maxHeavy` may run at a time; none unless given. */
  isHeavy?(task: Task): boolean;
  /** 1 unless given. */
  readonly maxHeavy?: number;
}

interface Waiting<Task, Result> {
  readonly task: Task;
  readonly heavy: boolean;
  resolve(result: Result): void;
  reject(error: ProviderError): void;
}

/** Runs tasks in threads, which it starts when first used. */
export class WorkerPool<Task, Result> {
  readonly #options: WorkerPoolOptions<Task>;
  readonly #line = new Set<Waiting<Task, Result>>();
  #threads: Promise<Piscina<Task, Result>> | undefined;
  #running = 0;
  #heavyRunning = 0;
  #completed = 0;
  #closed = false;

  constructor(options: WorkerPoolOptions<Task>) {
    this.#options = options;
  }

  /** Tasks in the line. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Tasks that have a thread. */
  get running(): number {
    return this.#running;
  }

  /** Tasks done since the start. */
  get completed(): number {
    return this.#completed;
  }

  /** Runs one task once a thread is free. Throws ProviderError; as soon as `signal` fires, with abortedError. */
  run(task: Task, signal: AbortSignal): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortedError(signal));
      const leave = () => {
        this.#line.delete(waiting);
        reject(abortedError(signal)); // 3.
      };
      const waiting: Waiting<Task, Result> = {
        task,
        heavy: this.#options.isHeavy?.(task) ?? false,
        resolve: (result) => {
          signal.removeEventListener("abort", leave);
          resolve(result);
        },
        reject: (error) => {
          signal.removeEventListener("abort", leave);
          reject(error);
        },
      };
      signal.addEventListener("abort", leave);
      this.#line.add(waiting);
      this.#advance();
    });
  }

  /** Ends the threads; what waits or runs is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#advance();
    const threads = await this.#threads?.catch(() => undefined);
    await threads?.destroy();
  }

  #advance(): void {
    const { threads, maxHeavy = 1 } = this.#options;
    for (const waiting of this.#line) {
      if (!this.#closed && this.#running >= threads) return; // 1., 2.
      if (!this.#closed && waiting.heavy && this.#heavyRunning >= maxHeavy) continue; // 2.
      this.#line.delete(waiting);
      // 5.
      if (this.#closed) waiting.reject(closedError());
      else void this.#run(waiting);
    }
  }

  async #run(waiting: Waiting<Task, Result>): Promise<void> {
    const weight = waiting.heavy ? 1 : 0;
    this.#running++;
    this.#heavyRunning += weight;
    const overdue = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    try {
      const threads = await this.#started();
      if (this.#closed) throw closedError(); // 5.
      timer = setTimeout(() => overdue.abort(), this.#options.taskTimeoutMs); // 4.
      const result = await threads.run(waiting.task, { signal: overdue.signal });
      this.#completed++;
      waiting.resolve(result);
    } catch (thrown) {
      waiting.reject(overdue.signal.aborted ? overdueError(thrown) : engineError(thrown));
    } finally {
      clearTimeout(timer);
      this.#running--;
      this.#heavyRunning -= weight;
      this.#advance();
    }
  }

  #started(): Promise<Piscina<Task, Result>> {
    this.#threads ??= startThreads<Task, Result>(this.#options).catch((thrown: unknown) => {
      this.#threads = undefined;
      throw thrown;
    });
    return this.#threads;
  }
}

async function startThreads<Task, Result>(options: WorkerPoolOptions<Task>): Promise<Piscina<Task, Result>> {
  const threads = new Piscina<Task, Result>({
    filename: options.workerUrl.href,
    name: options.workerExport,
    // No fewer when idle: starting a thread takes longer than most tasks.
    minThreads: options.threads,
    maxThreads: options.threads,
    workerData: await options.workerData?.(),
    env: {},
    recordTiming: false,
  });
  // A thread that dies idle is replaced; unheard, its error would end the process.
  threads.on("error", () => undefined);
  return threads;
}

/** What an attempt ends with whose signal has fired: the signal's own reason where that is a ProviderError. */
export function abortedError(signal: AbortSignal): ProviderError {
  if (signal.reason instanceof ProviderError) return signal.reason;
  return new ProviderError("timeout", "The attempt was ended before its answer was whole.", {
    cause: signal.reason,
  });
}

function overdueError(cause: unknown): ProviderError {
  return new ProviderError("timeout", "The engine was too slow.", { cause });
}

function closedError(): ProviderError {
  return new ProviderError("overloaded", "The engine is closed.");
}

function engineError(thrown: unknown): ProviderError {
  if (thrown instanceof ProviderError) return thrown;
  return new ProviderError("upstream", "The engine failed.", { cause: thrown });
}
