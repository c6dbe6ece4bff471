import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { withLimit } from "../../../lib/runtime/with-limit.ts";

/**
 * The time until the first account is there. A key that is not known in it may be one of that account's, and a
 * process that got another answer would cache it: so the answer waits.
 */
export class Founding {
  #isOver: boolean;
  readonly #founded: Promise<void>;

  /** Over at once without a promise. */
  constructor(founded?: Promise<void>) {
    this.#isOver = founded === undefined;
    this.#founded = (founded ?? Promise.resolve()).then(() => {
      this.#isOver = true;
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * What a look-up gives, which is made once more, when the time is over, if it did not know the key before. Throws
   * `service_unavailable` when the signal fires meanwhile.
   */
  async whenFounded<T>(lookUp: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#isOver) return lookUp();
    try {
      return await lookUp();
    } catch (thrown) {
      if (DomainError.from(thrown).reason !== ErrorReason.KEY_UNKNOWN) throw thrown;
    }
    await withLimit(this.#founded, { signal }).catch((thrown: unknown) => {
      const message = "the first account is being made";
      throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, message, { cause: thrown });
    });
    return lookUp();
  }
}
