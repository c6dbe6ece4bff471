import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer } from "node:net";
import { StartError } from "../../runtime/start-error.ts";

/** A port that an operator has chosen. */
export interface ChosenPort {
  /** The variable that says which, such as `PORT`. */
  readonly variable: string;
  /** An address, or a name that leads to one; HOST says which. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

const loopback = "127.0.0.1";

/**
 * The address to listen on for a name: the IPv4 one where it has both, since that is what people write who don't write
 * the name. `localhost` needs no resolver.
 */
export async function addressOf(host: string): Promise<string> {
  try {
    return (await lookup(host, { order: "ipv4first" })).address;
  } catch (thrown) {
    if (host === "localhost") return loopback;
    throw thrown;
  }
}

/** A name or an address as it stands in a URL. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Opens a port. Throws StartError with the variable to change when it can't be had. */
export async function openPort<T>(chosen: ChosenPort, open: (address: string) => Promise<T>): Promise<T> {
  try {
    return await open(await addressOf(chosen.host));
  } catch (thrown) {
    const line = refusalOf(thrown as NodeJS.ErrnoException, chosen);
    throw line === undefined ? thrown : new StartError(line, { cause: thrown });
  }
}

/**
 * Finds out whether ports can be had, all of them at one time, and lets go of them. For those that are opened only when
 * much else has been started. Throws StartError as `openPort` does.
 */
export async function probePorts(ports: readonly ChosenPort[]): Promise<void> {
  const probes = ports.map(() => createServer((socket) => socket.destroy()));
  try {
    for (const [index, chosen] of ports.entries()) {
      await openPort(chosen, async (address) => {
        await once(probes[index]?.listen(chosen.port, address) ?? createServer(), "listening");
      });
    }
  } finally {
    const open = probes.filter(({ listening }) => listening);
    await Promise.all(open.map((probe) => once(probe.close(), "close")));
  }
}

function refusalOf({ code }: NodeJS.ErrnoException, { variable, host, port }: ChosenPort) {
  switch (code) {
    case "EADDRINUSE":
      return `${variable} ${port} on ${host} is in use; set another one`;
    case "EACCES":
      return `${variable} ${port} on ${host} may not be opened by this user; set another one`;
    case "EADDRNOTAVAIL":
      return `HOST ${host} is no address of this machine; set another one`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `HOST ${host} is not a name that leads to an address; set another one`;
    default:
      return undefined;
  }
}
