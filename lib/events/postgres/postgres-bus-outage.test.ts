import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { expect, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { silentLog } from "../../runtime/log.ts";
import { BusStage, patience, text } from "../bus-stage.suite.ts";
import { SendQueue } from "../send-queue.ts";
import { openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

/** A door to a database that can be shut: then nothing answers, and all that went through it is cut. */
class Door {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor(url: string) {
    this.#target = new URL(url);
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String(this.#port);
    return url.href;
  }

  async open(): Promise<void> {
    this.#server = createServer((inside) => {
      const outside = connect(Number(this.#target.port), this.#target.hostname);
      for (const socket of [inside, outside]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
      }
      inside.pipe(outside);
      outside.pipe(inside);
    });
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  shut(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

test("an outage of the database only delays", { timeout: 60_000 }, async () => {
  const given = await openBusDatabase();
  const door = new Door(given.url);
  await door.open();
  const open = () => createPostgresBus({ url: door.url, log: silentLog });
  const stage = new BusStage({ open, close: given.close });
  try {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const gate = Promise.withResolvers<void>();
    const reader = stage.read(bus, { topic, maxBatchMessages: 2 }, async (_, signal) => {
      await Promise.race([gate.promise, once(signal, "abort")]);
    });
    const bodies = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    const queue = new SendQueue({ bus, topic, log: silentLog });
    const send = (body: string) => Promise.all(["a", "b"].map((key) => queue.add(text(key, body)).confirmed));
    for (const body of bodies.slice(0, 10)) await send(body);
    await waitUntil(() => reader.batches.length > 0);
    door.shut();
    let confirmed = 0;
    const sends = bodies.slice(10).map((body) => send(body).then(() => ++confirmed));
    await waitUntil(() => !reader.consumer.connected);
    expect(reader.consumer.lag).toBeUndefined();
    expect(confirmed).toBe(0);
    gate.resolve();
    await door.open();
    await Promise.all(sends);
    // A send whose answer was cut off is repeated, so a text may stand there twice.
    const arrived = () => Object.values(reader.textsByKey()).map((texts) => [...new Set(texts)]);
    await expect.poll(arrived, patience).toEqual([bodies, bodies]);
    await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0);
  } finally {
    await stage.clear();
    door.shut();
    await given.close();
  }
});

test("a consumer can leave while the database is away, and its batch comes again", {
  timeout: 60_000,
}, async () => {
  const given = await openBusDatabase();
  const door = new Door(given.url);
  await door.open();
  const away = createPostgresBus({ url: door.url, log: silentLog });
  const stage = new BusStage({
    open: () => createPostgresBus({ url: given.url, log: silentLog }),
    close: given.close,
  });
  try {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const group = stage.name("group");
    await stage.send(bus, topic, ["1", "2"]);
    const first = stage.read(away, { topic, group }, async (_, signal) => {
      await once(signal, "abort");
    });
    await waitUntil(() => first.batches.length === 1);
    door.shut();
    await first.leave();
    await away.close();
    const second = stage.read(bus, { topic, group });
    await expect.poll(() => second.texts(), patience).toEqual(["1", "2"]);
  } finally {
    await stage.clear();
    door.shut();
    await given.close();
  }
});
