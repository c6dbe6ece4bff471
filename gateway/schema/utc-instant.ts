import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";

/** RFC 3339 in UTC; what is finer than a millisecond is dropped. */
const utcPattern = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)$/;

/** An instant of a query. */
export const utcInstantSchema = Type.String({
  format: "date-time",
  pattern: String.raw`^(19[7-9]\d|[2-9]\d{3})-\d{2}-\d{2}T\d{2}:\d{2}:[0-5]\d(\.\d{1,9})?(Z|\+00:00)$`,
});

/** Milliseconds since 1970 of an instant such as `2027-12-31T23:59:59Z`; undefined when it is none or not in UTC. */
export function parseUtcInstant(text: string): number | undefined {
  const match = utcPattern.exec(text);
  if (match === null) return undefined;
  const [, second = "", fraction = ""] = match;
  const whole = `${second}.${fraction.padEnd(3, "0").slice(0, 3)}Z`;
  const ms = Date.parse(whole);
  // The 30th of February would be the 2nd of March.
  return Number.isNaN(ms) || new Date(ms).toISOString() !== whole ? undefined : ms;
}

/** An instant as answers show it: `2027-12-31T23:59:59.000Z`. Throws `internal` when a service left it out. */
export function formatInstant(instant: Timestamp | undefined): string {
  if (instant === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without its instant");
  return timestampDate(instant).toISOString();
}

/** The same of an instant that may be unset: then null. */
export function formatOptionalInstant(instant: Timestamp | undefined): string | null {
  return instant === undefined ? null : formatInstant(instant);
}
