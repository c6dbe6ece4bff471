import { rm } from "node:fs/promises";
import type { TestProject } from "vitest/node";
import { offer } from "../processes/offer.ts";
import { spawnOwner } from "./owner-process.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Loopback port that answers each connection with the URL of the run's PostgreSQL, started when first asked for. */
    testPostgresPort: number;
    /** A folder that is removed at the end of the run. */
    testFolder: string;
  }
}

/**
 * Offers one PostgreSQL cluster to the whole run. It belongs to a process of its own, which removes it when this one
 * ends, also when this one is killed. What this returns stops it.
 */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const postgres = await offer({
    start: async () => spawnOwner({ dataDir: await temporaryDirectory(), durable: false, temporary: true }),
    tell: ({ url }) => url,
    end: (owner) => owner.end(),
  });
  const folder = await temporaryDirectory();
  provide("testPostgresPort", postgres.port);
  provide("testFolder", folder);
  return async () => {
    await postgres.close();
    await rm(folder, { recursive: true });
  };
}
