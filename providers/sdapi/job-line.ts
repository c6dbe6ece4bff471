import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError } from "../contract.ts";
import { errorFromTransport } from "../upstream/failure.ts";

/** One job at a time; the others wait in their order, few of them. */
export class JobLine {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  /**
   * Resolves when it is the caller's turn, with what ends that. Throws ProviderError: `engine_full` where `maxWaiting`
   * wait already, and what the signal says when it fires.
   */
  async enter(maxWaiting: number, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw leftBy(signal);
    if (this.#isBusy) await this.#turn(maxWaiting, signal);
    this.#isBusy = true;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#isBusy = false;
      else next();
    };
  }

  #turn(maxWaiting: number, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(new ProviderError("engine_full", "As many calls wait for the server as may."));
    }
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(leftBy(signal));
      };
      this.#waiting.push(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

function leftBy(signal: AbortSignal): ProviderError {
  return errorFromTransport(new OutboundHttpError("aborted", signal.reason), signal);
}
