import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Transform } from "node:stream";

/** A TCP proxy on the loopback interface whose connections can be made to fall silent, or slow. */
export interface StallingProxy extends AsyncDisposable {
  readonly port: number;
  /** From now on nothing passes on the connections there are; they stay open, and new ones work. */
  stall(): void;
  /** From now on what passes to the client comes so much later; 0 again makes an end of it for what comes then. */
  delay(ms: number): void;
}

/** Starts a proxy to a port of the loopback interface. */
export async function startStallingProxy(targetPort: number): Promise<StallingProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let delayMs = 0;
  const server = createServer((incoming) => {
    const outgoing = connect(targetPort, "127.0.0.1");
    const pair = [incoming, outgoing] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on("error", end).on("close", end);
    const late = new Transform({
      transform: (chunk, _encoding, pass) =>
        delayMs === 0 ? pass(null, chunk) : void setTimeout(pass, delayMs, null, chunk),
    });
    incoming.pipe(outgoing).pipe(late).pipe(incoming);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    delay(ms) {
      delayMs = ms;
    },
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
