import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { TestProject } from "vitest/node";
import { type OwnerProcess, spawnOwner } from "./owner-process.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Loopback port that answers each connection with the URL of the run's PostgreSQL, started when first asked for. */
    testPostgresPort: number;
  }
}

/**
 * Offers one PostgreSQL cluster to the whole run. It belongs to a process of its own, which removes it when this one
 * ends, also when this one is killed. What this returns stops it.
 */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let owner: Promise<OwnerProcess> | undefined;
  const listener = createServer((socket) => {
    socket.on("error", () => undefined);
    owner ??= startOwner();
    owner
      .then(({ url }) => url)
      .then(
        (url) => socket.end(url),
        (thrown: unknown) => socket.end(String(thrown)),
      );
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  provide("testPostgresPort", (listener.address() as AddressInfo).port);
  return async () => {
    listener.close();
    await (await owner)?.end();
  };
}

async function startOwner(): Promise<OwnerProcess> {
  return spawnOwner({ dataDir: await temporaryDirectory(), durable: false, temporary: true });
}
