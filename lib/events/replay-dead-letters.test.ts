import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { silentLog } from "../runtime/log.ts";
import { type Bus, type BusMessage, PublishError } from "./bus.ts";
import { type BusReader, BusStage, patience, patiently, textOf } from "./bus-stage.suite.ts";
import { sendDeadLetters } from "./dead-letter.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./postgres/bus-database.suite.ts";
import { createPostgresBus } from "./postgres/postgres-bus.ts";
import { type ReplayOptions, replayDeadLetters } from "./replay-dead-letters.ts";
import { deadLetterTopicOf } from "./topics.ts";

const group = "test.group";

describe("a replay of dead letters", { timeout: 60_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;
  let bus: Bus;
  let topic: string;
  let reader: BusReader;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog }),
      close: given.close,
    });
    ({ topic, bus } = await stage.topic({ partitions: 2 }));
    await bus.ensureTopics([stage.settings({ name: deadLetterTopicOf(topic), partitions: 2 })], patiently());
    reader = stage.read(bus, { topic });
  });
  afterEach(async () => {
    await stage.clear();
    await given.close();
  });

  const replay = (options: Partial<ReplayOptions> = {}) =>
    replayDeadLetters({ bus, topic, group, log: silentLog, quietMs: 50, signal: patiently(), ...options });

  /** Sends texts and has a group quarantine what arrives of them. */
  async function quarantine(bodies: readonly string[], by = group): Promise<void> {
    const before = reader.firsts().length;
    await stage.send(bus, topic, bodies);
    await waitUntil(() => reader.firsts().length === before + bodies.length);
    await sendAll(reader.firsts().slice(before), by);
  }

  const sendAll = (messages: readonly BusMessage[], by: string) =>
    sendDeadLetters(
      { bus, group: by, log: silentLog },
      messages.map((message) => ({ message, reason: "poison" })),
      patiently(),
    );

  test("puts back what the group quarantined, once", async () => {
    await quarantine(["1", "2", "3"]);
    await quarantine(["4"], "other.group");
    expect(await replay()).toEqual({ replayed: 3, unusable: 0, quarantinedAgain: false });
    await waitUntil(() => reader.firsts().length === 4 + 3);
    const again = reader.firsts().filter(({ headers }) => headers["dead-letter-replay"] !== undefined);
    expect(again.map(({ key, value }) => [key, textOf(value)]).sort()).toEqual(
      ["1", "2", "3"].map((body) => [`key of ${body}`, body]),
    );
    expect(again.map(({ headers }) => Object.keys(headers))).toEqual(
      [1, 2, 3].map(() => ["dead-letter-replay"]),
    );
    expect(await replay()).toEqual({ replayed: 0, unusable: 0, quarantinedAgain: false });
    await quarantine(["5"]);
    expect(await replay()).toMatchObject({ replayed: 1 });
    expect(await replay({ group: "other.group" })).toMatchObject({ replayed: 1 });
  });

  test("ends when what it put back is quarantined again, and leaves that for the next", async () => {
    let mended = false;
    const stubborn = stage.read(bus, { topic }, async (batch) => {
      const replayed = batch.filter(({ headers }) => headers["dead-letter-replay"] !== undefined);
      if (!mended) await sendAll(replayed, group);
    });
    await quarantine(["1", "2"]);
    const patient = await replay({ quietMs: 3000 });
    expect(patient).toEqual({ replayed: 2, unusable: 0, quarantinedAgain: true });
    await waitUntil(() => stubborn.firsts().length === 4);
    mended = true;
    expect(await replay()).toEqual({ replayed: 2, unusable: 0, quarantinedAgain: false });
    await expect.poll(() => stubborn.sorted(), patience).toEqual(["1", "1", "1", "2", "2", "2"]);
  });

  test("leaves out what is no letter or was cut", async () => {
    await quarantine(["1"]);
    const [message] = reader.firsts();
    if (message === undefined) throw new Error("unreachable");
    await sendAll([{ ...message, value: new Uint8Array(100_000) }], group);
    await sendMessages(bus, deadLetterTopicOf(topic), [{ key: "k", value: message.value }], patiently());
    expect(await replay()).toEqual({ replayed: 1, unusable: 2, quarantinedAgain: false });
  });

  test("fails when a message is not taken back, and begins with it the next time", async () => {
    await quarantine(["1"]);
    const refusing: ReplayOptions["bus"] = {
      consume: (options) => bus.consume(options),
      send: () => Promise.reject(new PublishError("not allowed")),
    };
    await expect(replay({ bus: refusing })).rejects.toThrow("not allowed");
    expect(await replay()).toMatchObject({ replayed: 1 });
  });

  test("ends with its signal", async () => {
    const nowhere = createPostgresBus({ url: "postgres://nobody@127.0.0.1:1/none", log: silentLog });
    const giveUp = new AbortController();
    const pending = replay({ bus: nowhere, signal: giveUp.signal });
    giveUp.abort(new Error("given up"));
    await expect(pending).rejects.toThrow("given up");
    await expect(replay({ bus: nowhere, signal: giveUp.signal })).rejects.toThrow("given up");
    await nowhere.close();
  });
});
