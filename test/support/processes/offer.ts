import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Something that starts when it is first asked for. */
export interface Offer {
  /** Loopback port that answers each connection with what was told of it, or why it did not start. */
  readonly port: number;
  /** Ends it, if it was started. */
  close(): Promise<void>;
}

/** How a thing is started, what is told of it, and how it is ended. */
export interface Offered<T> {
  start(): Promise<T>;
  tell(started: T): Promise<string>;
  end(started: T): Promise<void>;
}

/** Offers a thing to all files of a run: none of it is there until the first of them asks. */
export async function offer<T>({ start, tell, end }: Offered<T>): Promise<Offer> {
  let started: Promise<T> | undefined;
  const listener = createServer((socket) => {
    socket.on("error", () => undefined);
    started ??= start();
    started.then(tell).then(
      (answer) => socket.end(answer),
      (thrown: unknown) => socket.end(String(thrown)),
    );
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    async close() {
      listener.close();
      const running = await started?.catch(() => undefined);
      if (running !== undefined) await end(running);
    },
  };
}
