import { expect, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { silentLog } from "../runtime/log.ts";
import type { BusMessage, OutgoingMessage } from "./bus.ts";
import { bytes } from "./bus-stage.suite.ts";
import {
  type DeadLetter,
  fromDeadLetterMessage,
  sendDeadLetters,
  toDeadLetterMessage,
} from "./dead-letter.ts";
import { maxEventBytes } from "./event-message.ts";

const message: BusMessage = {
  topic: "some.topic",
  partition: 3,
  offset: 12_345_678_901_234_567_890n,
  appendedAtMs: 1_700_000_000_000,
  key: "key",
  value: bytes("value"),
  headers: { own: "kept" },
};

/** As it stands on the dead-letter topic. */
function quarantined(letter: DeadLetter, group = "some.group"): BusMessage {
  const { key, value, headers = {} } = toDeadLetterMessage(letter, group);
  return { ...message, topic: "some.topic.dead-letter", partition: 0, offset: 7n, key, value, headers };
}

test("a message comes back from the dead letter as it was", () => {
  expect(fromDeadLetterMessage(quarantined({ message, reason: "too_old", eventId: "gen-tts-1" }))).toEqual({
    reason: "too_old",
    group: "some.group",
    topic: "some.topic",
    eventId: "gen-tts-1",
    replay: "",
    message: { key: "key", value: message.value, headers: { own: "kept" } },
  });
});

test("a place is stated exactly", () => {
  expect(toDeadLetterMessage({ message, reason: "poison" }, "some.group").headers).toEqual({
    own: "kept",
    "dead-letter-reason": "poison",
    "dead-letter-group": "some.group",
    "dead-letter-topic": "some.topic",
    "dead-letter-partition": "3",
    "dead-letter-offset": "12345678901234567890",
  });
});

test("what is larger than any event is cut, and does not come back", () => {
  const largest = { ...message, value: new Uint8Array(maxEventBytes) };
  const larger = { ...message, value: new Uint8Array(maxEventBytes + 1) };
  const [kept, cut] = [largest, larger].map((each) => quarantined({ message: each, reason: "undecodable" }));
  expect([kept?.value.length, cut?.value.length]).toEqual([maxEventBytes, maxEventBytes]);
  expect(kept && fromDeadLetterMessage(kept)?.message?.value).toEqual(largest.value);
  expect(cut && fromDeadLetterMessage(cut)).toMatchObject({ reason: "undecodable", message: undefined });
});

test("what no consumer put there is no letter", () => {
  expect(fromDeadLetterMessage(message)).toBeUndefined();
});

test("letters are sent at once, and given up with the signal", async () => {
  const sent: { topic: string; messages: readonly OutgoingMessage[]; signal: AbortSignal }[] = [];
  const answers = [Promise.resolve(), new Promise<void>(() => undefined)];
  const bus = {
    send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal) {
      sent.push({ topic, messages, signal });
      return answers.shift() ?? Promise.reject(new Error("too often"));
    },
  };
  const letters = ["1", "2"].map((reason) => ({ message, reason }));
  await sendDeadLetters({ bus, group: "some.group", log: silentLog }, [], new AbortController().signal);
  expect(sent).toEqual([]);
  await sendDeadLetters({ bus, group: "some.group", log: silentLog }, letters, new AbortController().signal);
  expect(sent[0]).toMatchObject({
    topic: "some.topic.dead-letter",
    messages: [{ key: "key" }, { key: "key" }],
  });
  const giveUp = new AbortController();
  const pending = sendDeadLetters({ bus, group: "some.group", log: silentLog }, letters, giveUp.signal);
  await waitUntil(() => sent.length === 2);
  giveUp.abort(new Error("given up"));
  await expect(pending).rejects.toThrow("given up");
  expect(sent[1]?.signal.aborted).toBe(true);
});
