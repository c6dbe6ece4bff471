import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What becomes of the broker's answer to an append: it passes, gets lost with its connection, or tells an error. */
export type AnswerFate = "pass" | "lose" | { readonly errorCode: number };

/** Something between clients and a broker that meddles with answers; the broker itself gets every request. */
export interface KafkaProxy {
  readonly port: number;
  /** The broker to pass requests on to. */
  connectTo(broker: string): void;
  /** Decides on each answer to an append from now on. */
  decide(fate: () => AnswerFate): void;
  close(): Promise<void>;
}

const produceKey = 0;

/** Starts a proxy; it passes everything on until told otherwise. */
export async function startKafkaProxy(): Promise<KafkaProxy> {
  let brokerPort = 0;
  let decide: () => AnswerFate = () => "pass";
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const broker = connect(brokerPort, "localhost");
    const appends = new Set<number>();
    for (const [one, other] of [[client, broker] as const, [broker, client] as const]) {
      sockets.add(one);
      one
        .on("error", () => undefined)
        .on("close", () => {
          sockets.delete(one);
          other.destroy();
        });
    }
    onFrame(client, (frame) => {
      if (frame.readInt16BE(4) === produceKey) appends.add(frame.readInt32BE(8));
      broker.write(frame);
    });
    onFrame(broker, (frame) => {
      const fate = appends.delete(frame.readInt32BE(4)) ? decide() : "pass";
      if (fate === "lose") client.destroy();
      else client.write(fate === "pass" ? frame : withError(frame, fate.errorCode));
    });
  });
  server.listen(0, "localhost");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connectTo(broker) {
      brokerPort = Number(broker.split(":")[1]);
    },
    decide(fate) {
      decide = fate;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Requests and answers both begin with their length, 4 bytes. */
function onFrame(socket: Socket, take: (frame: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const end = 4 + rest.readInt32BE(0);
      take(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  });
}

/** Produce response up to version 8: length, correlation id, topics [name, partitions [index, error code …]]. */
function withError(frame: Buffer, errorCode: number): Buffer {
  const changed = Buffer.from(frame);
  const nameLength = frame.readInt16BE(12);
  changed.writeInt16BE(errorCode, 14 + nameLength + 8);
  return changed;
}
