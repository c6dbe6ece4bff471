import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { isDatabaseAway } from "../../lib/database/database-errors.ts";
import { ConfigError } from "../../lib/runtime/config.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { nodeCodeOf } from "../../lib/runtime/peer-away.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { startFailure } from "../../lib/service/process.ts";

/** What a command's exit code says; docs/command-line.md has the same table. */
export const exitCodes = {
  ok: 0,
  /** What was looked at is not in order. */
  notInOrder: 1,
  /** The command was written wrongly, or a variable is. */
  usage: 2,
  /** It was understood and refused. */
  refused: 3,
  notFound: 4,
  /** A service, database or broker that it needs does not answer. */
  unreachable: 5,
  /** No key, or none that counts. */
  notAllowed: 6,
  /** A fault of this program. */
  internal: 70,
} as const;

/** Why a command ends otherwise than well. */
export type FailureKind = Exclude<keyof typeof exitCodes, "ok">;

/** A command that can't be done; the message is one line that says what to do about it. */
export class CommandFailure extends StartError {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** A command that was written wrongly. */
export function wrongUsage(message: string): CommandFailure {
  return new CommandFailure("usage", message);
}

/** The exit code and the one line that whatever was thrown comes to. */
export function describeFailure(thrown: unknown): { readonly code: number; readonly line: string } {
  const kind = kindOf(thrown);
  const text = thrown instanceof DomainError ? `error: ${thrown.message}` : startFailure(thrown);
  return { code: exitCodes[kind], line: lineOf(kind, thrown, text) };
}

function lineOf(kind: FailureKind, thrown: unknown, text: string): string {
  if (thrown instanceof Error && sqlStateOf(thrown) !== undefined) {
    return `error: PostgreSQL: ${thrown.message.split("\n")[0]}`;
  }
  const [first = ""] = text.split("\n");
  if (kind !== "unreachable" || thrown instanceof CommandFailure) return first;
  const { name, message } = thrown as Error;
  if (name === "TimeoutError") return "error: Kafka has not answered in time: look at KAFKA_BROKERS";
  if (name.startsWith("KafkaJS")) return `error: Kafka can't be used: ${message.split("\n")[0]}`;
  return `error: the database can't be reached (${errnoOf(thrown) ?? "no connection"})`;
}

function kindOf(thrown: unknown): FailureKind {
  if (thrown instanceof CommandFailure) return thrown.kind;
  if (thrown instanceof ConfigError) return "usage";
  if (thrown instanceof StartError) return "refused";
  if (thrown instanceof DomainError) return kindOfReason(thrown.reason);
  const state = sqlStateOf(thrown);
  if (state !== undefined) return kindOfSqlState(state, isDatabaseAway(thrown));
  if (!(thrown instanceof Error)) return "internal";
  const { address } = thrown as { address?: string };
  const isAway = address !== undefined || thrown instanceof AggregateError || errnoOf(thrown) === "ENOTFOUND";
  const isKafkas = thrown.name.startsWith("KafkaJS") || thrown.name === "TimeoutError";
  return isAway || isKafkas ? "unreachable" : "internal";
}

/** PostgreSQL's code of what it refused, five characters (its appendix A). */
function sqlStateOf(thrown: unknown): string | undefined {
  const code = nodeCodeOf(thrown);
  return code !== undefined && /^[0-9][0-9A-Z]{4}$/.test(code) ? code : undefined;
}

/** No such database; a role that may not connect or do it. */
function kindOfSqlState(state: string, isAway: boolean): FailureKind {
  if (state === "3D000") return "notFound";
  if (state.startsWith("28") || state === "42501") return "refused";
  return isAway ? "unreachable" : "internal";
}

function errnoOf(thrown: unknown): string | undefined {
  const { code } = thrown as NodeJS.ErrnoException;
  return code === "" ? undefined : code;
}

/** What a service's refusal comes to for whoever gave the command. */
export function kindOfReason(reason: ErrorReason): FailureKind {
  switch (reason) {
    case ErrorReason.SERVICE_UNAVAILABLE:
    case ErrorReason.TIMED_OUT:
      return "unreachable";
    case ErrorReason.KEY_MISSING:
    case ErrorReason.KEY_UNKNOWN:
    case ErrorReason.KEY_EXPIRED:
    case ErrorReason.KEY_DISABLED:
    case ErrorReason.CALLER_NOT_ALLOWED:
      return "notAllowed";
    case ErrorReason.RECORD_UNKNOWN:
    case ErrorReason.MODEL_UNKNOWN:
      return "notFound";
    case ErrorReason.INTERNAL:
    case ErrorReason.UNSPECIFIED:
      return "internal";
    default:
      return "refused";
  }
}
