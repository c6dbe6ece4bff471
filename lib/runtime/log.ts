import { type DestinationStream, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import { GatheredLines } from "./gathered-lines.ts";
import { readableLine } from "./readable-line.ts";

/** A structured logger: one JSON object a line, or a line for people where stdout is a terminal. */
export type Log = Logger;

/** Fields that may hold a secret or a person's text; they are cut out wherever they stand in a log object. */
const secretFields = [
  "authorization",
  "apiKey",
  "secret",
  "token",
  "password",
  "input",
  "prompt",
  "headers",
  "body",
];

interface LogOptions {
  /** The process: `gateway`, `speech`, … */
  name: string;
  level: string;
  /** Where lines go; stdout unless given. */
  destination?: DestinationStream;
}

/**
 * Makes the logger of a process. Errors are written with type, code, message, stack and cause alone; fields named like
 * secrets or like people's texts are replaced, at the top of an object and one level below it.
 */
export function createLog({ name, level, destination }: LogOptions): Log {
  const options = {
    level,
    base: { process: name },
    timestamp: stdTimeFunctions.isoTime,
    serializers: { err: plainError },
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: "[redacted]" },
  };
  return pino(options, destination ?? terminal() ?? gatheredLines(process.stdout.fd));
}

/** Less than 16 KiB, which is the most that is written at once. */
const muchBytes = 8 * 1024;

/** Lines into an open file, several with a write where they come soon after each other. */
export function gatheredLines(descriptor: number): GatheredLines {
  return new GatheredLines(pino.destination({ fd: descriptor, sync: false, minLength: muchBytes }));
}

/** Where people read the log; undefined where stdout is a pipe or a file. */
function terminal(): DestinationStream | undefined {
  const { stdout } = process;
  if (!stdout.isTTY) return undefined;
  return { write: (line) => void stdout.write(readableLine(line, stdout.hasColors())) };
}

/** Without what else hangs on an error: drivers put connections with their secrets, and rows, there. */
function plainError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const { type, message, stack } = stdSerializers.err(thrown);
  return { type, code: (thrown as NodeJS.ErrnoException).code, message, stack };
}

/** A logger that writes nothing, for tests and commands. */
export const silentLog: Log = pino({ level: "silent" });
