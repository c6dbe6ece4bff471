import type { Log } from "../runtime/log.ts";
import type { Bus, BusMessage, OutgoingMessage } from "./bus.ts";
import { maxEventBytes } from "./event-message.ts";
import { sendAll } from "./send-all.ts";
import { deadLetterTopicOf } from "./topics.ts";

/** Headers that a quarantined message has besides its own. */
export const deadLetterHeaders = {
  /** Why the group could not apply it: `undecodable`, `too_old`, `poison`, or what the group said. */
  reason: "dead-letter-reason",
  /** The group that could not apply it; others may have. */
  group: "dead-letter-group",
  topic: "dead-letter-topic",
  partition: "dead-letter-partition",
  offset: "dead-letter-offset",
  /** The event's id, where it could be read. */
  eventId: "dead-letter-event-id",
  /** How many bytes the value had that was cut, being larger than any event. */
  cutBytes: "dead-letter-cut-bytes",
} as const;

/** On a message that a replay has put back onto its topic: which replay that was. */
export const replayHeader = "dead-letter-replay";

/** A message that a group can't apply, and why. */
export interface DeadLetter {
  readonly message: BusMessage;
  readonly reason: string;
  readonly eventId?: string;
}

/** A quarantined message, read back. */
export interface ReadDeadLetter {
  readonly reason: string;
  readonly group: string;
  /** The topic that the message stood on. */
  readonly topic: string;
  /** Empty where the id could not be read. */
  readonly eventId: string;
  /** The message as it was; undefined when it was cut. */
  readonly message: OutgoingMessage | undefined;
  /** The replay that had put it onto its topic before it was quarantined; empty when none had. */
  readonly replay: string;
}

const sendTimeoutMs = 30_000;

interface DeadLetterOptions {
  readonly bus: Pick<Bus, "send">;
  readonly group: string;
  readonly log: Log;
}

/** Puts messages of one topic where a replay finds them; resolves once they are durable there. */
export async function sendDeadLetters(
  { bus, group, log }: DeadLetterOptions,
  letters: readonly DeadLetter[],
  signal: AbortSignal,
): Promise<void> {
  const [first] = letters;
  if (first === undefined) return;
  const messages = letters.map((letter) => toDeadLetterMessage(letter, group));
  const topic = deadLetterTopicOf(first.message.topic);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(sendTimeoutMs)]);
  const outcomes = await sendAll({ bus, topic, log }, messages, limit);
  const failed = outcomes.findIndex((failure) => failure !== undefined);
  if (failed >= 0) throw outcomes[failed];
}

/** A message for the dead-letter topic. What is larger than any event is cut: it would never be taken. */
export function toDeadLetterMessage(
  { message, reason, eventId }: DeadLetter,
  group: string,
): OutgoingMessage {
  const { value } = message;
  const isCut = value.length > maxEventBytes;
  return {
    key: message.key,
    value: isCut ? value.subarray(0, maxEventBytes) : value,
    headers: {
      ...message.headers,
      [deadLetterHeaders.reason]: reason,
      [deadLetterHeaders.group]: group,
      [deadLetterHeaders.topic]: message.topic,
      [deadLetterHeaders.partition]: String(message.partition),
      [deadLetterHeaders.offset]: String(message.offset),
      ...(eventId === undefined ? {} : { [deadLetterHeaders.eventId]: eventId }),
      ...(isCut ? { [deadLetterHeaders.cutBytes]: String(value.length) } : {}),
    },
  };
}

/** What a message of the dead-letter topic says; undefined when it is none. */
export function fromDeadLetterMessage({ key, value, headers }: BusMessage): ReadDeadLetter | undefined {
  const { [deadLetterHeaders.group]: group, [deadLetterHeaders.topic]: topic } = headers;
  if (group === undefined || topic === undefined) return undefined;
  const added = new Set<string>(Object.values(deadLetterHeaders));
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !added.has(name)));
  return {
    reason: headers[deadLetterHeaders.reason] ?? "",
    group,
    topic,
    eventId: headers[deadLetterHeaders.eventId] ?? "",
    message: headers[deadLetterHeaders.cutBytes] === undefined ? { key, value, headers: own } : undefined,
    replay: headers[replayHeader] ?? "",
  };
}
