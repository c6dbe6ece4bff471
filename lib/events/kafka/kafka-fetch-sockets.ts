import net from "node:net";
import tls from "node:tls";
import type { ISocketFactory } from "kafkajs";

const keepAliveMs = 60_000;
/** Kafka's number of the request; it stands behind the four bytes of the length. */
const fetchApiKey = 1;
const apiKeyAt = 4;

/**
 * The sockets of a client on which it waits for messages: kafkajs keeps one to each broker for nothing else. Leaving a
 * group would wait for as long as a broker lets a fetch wait.
 */
export class KafkaFetchSockets {
  readonly #sockets = new Set<net.Socket>();

  /** Makes the sockets of a client as kafkajs does, and looks what they are used for. */
  readonly factory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    const name = net.isIP(host) ? {} : { servername: host };
    const socket = ssl
      ? tls.connect({ host, port, ...name, ...ssl }, onConnect)
      : net.connect({ host, port }, onConnect);
    socket.setKeepAlive(true, keepAliveMs);
    const write = socket.write.bind(socket) as (...request: unknown[]) => boolean;
    socket.write = (...request: unknown[]) => {
      const [bytes] = request;
      if (
        Buffer.isBuffer(bytes) &&
        bytes.length > apiKeyAt + 2 &&
        bytes.readInt16BE(apiKeyAt) === fetchApiKey
      ) {
        this.#sockets.add(socket);
      }
      return write(...request);
    };
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  };

  cut(): void {
    for (const socket of this.#sockets) socket.destroy(new Error("nothing is fetched any more"));
  }
}
