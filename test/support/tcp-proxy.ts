import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  held: boolean;
}

/** Starts a proxy, which is away until it has a server. */
export async function startTcpProxy(): Promise<TcpProxy> {
  const proxy = new TcpProxy();
  await proxy.listen();
  return proxy;
}

/** A port of the loopback interface that stays the same while the server behind it comes, goes and moves. */
export class TcpProxy {
  readonly #pairs = new Set<Pair>();
  readonly #listener: Server = createServer((client) => this.#join(client));
  #target = 0;
  #isAway = true;
  #held: string | undefined;

  /** Where clients connect to. */
  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Resolves once clients can connect. */
  async listen(): Promise<void> {
    this.#listener.listen(0, "127.0.0.1");
    await once(this.#listener, "listening");
  }

  /** Where new connections go from now on. */
  connectTo(port: number): void {
    this.#target = port;
    this.#isAway = false;
  }

  /** Breaks the connections there are and refuses new ones, until `connectTo` or `comeBack`. */
  goAway(): void {
    this.#isAway = true;
    this.#drop();
  }

  /** Ends `goAway`. */
  comeBack(): void {
    this.#isAway = false;
  }

  /** From now on a request with this text in its first bytes reaches the server, and its answer stays here. */
  holdAnswersTo(request: string): void {
    this.#held = request;
  }

  /** Lets go of what was held, and of all that follows. */
  passAnswers(): void {
    this.#held = undefined;
    for (const pair of this.#pairs) {
      if (pair.held) pair.server.pipe(pair.client);
      pair.held = false;
    }
  }

  /** Breaks the connections there are, with what was held; answers on new ones pass. */
  dropConnections(): void {
    this.#held = undefined;
    this.#drop();
  }

  /** Breaks everything and stops. */
  async close(): Promise<void> {
    this.#listener.close();
    this.#drop();
    await once(this.#listener, "close");
  }

  #join(client: Socket): void {
    if (this.#isAway) {
      client.destroy();
      return;
    }
    const server = connect({ port: this.#target, host: "127.0.0.1", noDelay: true });
    client.setNoDelay();
    const pair: Pair = { client, server, held: false };
    this.#pairs.add(pair);
    const end = () => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    client.on("data", (chunk: Buffer) => {
      if (this.#held === undefined || pair.held || !chunk.includes(this.#held)) return;
      pair.held = true;
      server.unpipe(client).pause();
    });
    client.pipe(server).pipe(client);
  }

  #drop(): void {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }
}
