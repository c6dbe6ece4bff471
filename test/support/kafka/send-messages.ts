import type { Bus, OutgoingMessage } from "../../../lib/events/bus.ts";
import { sendAll } from "../../../lib/events/send-all.ts";
import { silentLog } from "../../../lib/runtime/log.ts";

const patienceMs = 60_000;

/** Sends messages as processes do, until all are durable. Rejects when one is refused for good, or with the signal. */
export async function sendMessages(
  bus: Pick<Bus, "send">,
  topic: string,
  messages: readonly OutgoingMessage[],
  signal: AbortSignal = AbortSignal.timeout(patienceMs),
): Promise<void> {
  const outcomes = await sendAll({ bus, topic, log: silentLog }, messages, signal);
  const failed = outcomes.findIndex((failure) => failure !== undefined);
  if (failed >= 0) throw outcomes[failed];
}
