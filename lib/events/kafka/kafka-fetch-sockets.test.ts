import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { KafkaFetchSockets } from "./kafka-fetch-sockets.ts";

/** The start of a request: its length, its number and the version. */
function request(apiKey: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeInt32BE(8);
  bytes.writeInt16BE(apiKey, 4);
  return bytes;
}

test("only the sockets that fetch are cut", async () => {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets = new KafkaFetchSockets();
  const connect = async (...apiKeys: number[]): Promise<Socket> => {
    const connected = Promise.withResolvers<void>();
    const onConnect = connected.resolve;
    const socket = sockets.factory({ host: "127.0.0.1", port, ssl: undefined as never, onConnect });
    onTestFinished(() => void socket.destroy());
    await connected.promise;
    for (const apiKey of apiKeys) {
      socket.write(request(apiKey));
      await once(socket, "data");
    }
    return socket;
  };
  onTestFinished(() => void server.close());
  // Heartbeats and commits go the other way; versions are asked for on both.
  const [fetching, other] = [await connect(18, 1), await connect(18, 12, 8)];
  const failed = once(fetching, "error");
  sockets.cut();
  await failed;
  expect(fetching.destroyed).toBe(true);
  other.write(request(13));
  await once(other, "data");
  expect(other.destroyed).toBe(false);
});
