/**
 * Lines of a log on their way to a file descriptor: a write for each would cost a busy process more than to make the line.
 *
 * 1. What comes after a quiet time is written at once, what comes within a moment of a write together, or when it is much.
 *    Without lines there is no timer.
 * 2. A line waits for at most `gatherMs`. Before a process ends what waits is written, however it ends but by SIGKILL or a
 *    signal that it does not handle: pino's destination does that at exit, and pino itself behind each fatal line.
 */

/** What SIGKILL takes along, milliseconds. */
const gatherMs = 100;
/** Where lines go: writes them by itself when they are much, and else when it is told to. */
interface LineWriter {
  write(line: string): unknown;
  /** Begins to write what waits. */
  flush(): void;
  /** Writes what waits before it returns. */
  flushSync(): void;
}

/** The destination of a process's log. */
export class GatheredLines implements Pick<LineWriter, "write" | "flushSync"> {
  readonly #writer: LineWriter;
  #gathering: NodeJS.Timeout | undefined;
  #waiting = false;

  constructor(writer: LineWriter) {
    this.#writer = writer;
  }

  write(line: string): void {
    this.#writer.write(line);
    this.#waiting = true;
    if (this.#gathering === undefined) this.#flush();
  }

  /** Writes what waits before it returns. */
  flushSync(): void {
    this.#writer.flushSync();
  }

  /** Begins a write, and another one a moment later if there is something to write by then. */
  #flush(): void {
    this.#waiting = false;
    this.#writer.flush();
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      if (this.#waiting) this.#flush();
    }, gatherMs).unref();
  }
}
