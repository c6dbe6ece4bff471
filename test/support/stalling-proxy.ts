import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy on the loopback interface whose connections can be made to fall silent. */
export interface StallingProxy extends AsyncDisposable {
  readonly port: number;
  /** From now on nothing passes on the connections there are; they stay open, and new ones work. */
  stall(): void;
}

/** Starts a proxy to a port of the loopback interface. */
export async function startStallingProxy(targetPort: number): Promise<StallingProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((incoming) => {
    const outgoing = connect(targetPort, "127.0.0.1");
    const pair = [incoming, outgoing] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on("error", end).on("close", end);
    incoming.pipe(outgoing).pipe(incoming);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    stall() {
      for (const pair of pairs) for (const socket of pair) socket.unpipe().pause();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      await once(server, "close");
    },
  };
}
