import type { Socket } from "node:net";

/**
 * The connections of a port, all and by address: so many that no process has use for more, so that what a connection
 * costs (30 KiB, of HTTP/2 twice that) is bounded. A gateway has one for each stream that it carries.
 */
const maxConnections = 8192;
/** Of one address; half of all, so that no address keeps the others out. */
const maxConnectionsPerAddress = maxConnections / 2;
/** HTTP/2 connections of one address, each with as many streams as port-listener.ts allows. */
const maxSessionsPerAddress = 256;

/** How many connections a port takes. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  readonly maxSessionsPerAddress: number;
}

const defaultLimits: ConnectionLimits = { maxConnections, maxConnectionsPerAddress, maxSessionsPerAddress };

/** Every open connection of a port. What is one too many is ended without a word. */
export class PortConnections {
  readonly #limits: ConnectionLimits;
  readonly #open = new Set<Socket>();
  readonly #byAddress = new Map<string, number>();
  readonly #sessionsByAddress = new Map<string, number>();

  constructor(limits: Partial<ConnectionLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  /** A client has connected; false when it was one too many. */
  add(socket: Socket): boolean {
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    const isFull = this.#open.size >= maxConnections;
    if (isFull || !countUntilClose(this.#byAddress, socket, maxConnectionsPerAddress)) {
      socket.destroy();
      return false;
    }
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    return true;
  }

  /** It turned out to speak HTTP/2; false when that was one too many. */
  beginSession(socket: Socket): boolean {
    if (countUntilClose(this.#sessionsByAddress, socket, this.#limits.maxSessionsPerAddress)) return true;
    socket.destroy();
    return false;
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

function countUntilClose(counts: Map<string, number>, socket: Socket, most: number): boolean {
  const address = socket.remoteAddress ?? "";
  const count = counts.get(address) ?? 0;
  if (count >= most) return false;
  counts.set(address, count + 1);
  socket.once("close", () => {
    const left = (counts.get(address) ?? 1) - 1;
    if (left === 0) counts.delete(address);
    else counts.set(address, left);
  });
  return true;
}
