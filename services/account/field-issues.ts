import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { nameFault } from "../../lib/limits/record-name.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";

/** The last second of the year 9999, where RFC 3339 and protobuf's Timestamp end. */
const lastSecond = 253_402_300_799n;

/** Collects the faults of a request, each under its field's path, so that one answer names them all. */
export class FieldIssues {
  readonly #issues: Issue[] = [];

  add(path: string, message: string): void {
    this.#issues.push({ path, message });
  }

  /** Throws `invalid_body` with what was found, if anything was. */
  throwIfAny(): void {
    if (this.#issues.length > 0) throw DomainError.invalid(this.#issues);
  }

  /** A name for people: 1 to 256 characters on one line, not all blank. */
  checkName(path: string, name: string): void {
    const fault = nameFault(name);
    if (fault !== undefined) this.add(path, fault);
  }

  checkUuid(path: string, id: string): void {
    if (!isUuid(id)) this.add(path, "must be a UUID");
  }

  /** The whole number, or the default when there is none, from `min` to `max`. */
  checkInteger(path: string, value: number, min: number, max: number): void {
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      this.add(path, `must be a whole number from ${min} to ${max}`);
    }
  }

  /** The instant as a Date; undefined, with an issue, when it is out of range. */
  toDate(path: string, instant: Timestamp): Date | undefined {
    const { seconds, nanos } = instant;
    if (seconds >= 0n && seconds <= lastSecond && nanos >= 0 && nanos < 1e9) return timestampDate(instant);
    this.add(path, "must lie between 1970 and 9999");
    return undefined;
  }
}
