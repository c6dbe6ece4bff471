/**
 * Connections to other processes, for calls that are never made twice.
 *
 * 1. A call is repeated only when it provably has not begun. Over HTTP/1.1 that is so until its connection is there:
 *    refused, unreachable, not to be resolved. From the first byte on a server may have read it, whatever breaks next,
 *    so what waits and tries again is the opening of the connection, a few times for about half a second.
 * 2. A kept connection is given up before its server would end it: servers of ours leave a connection without
 *    notice open for DRAIN_DELAY_MS (5 s unless set), and say `Connection: close` in every other answer while they
 *    drain.
 */
import { Agent, type AgentOptions } from "node:http";
import { type RequestOptions, Agent as TlsAgent } from "node:https";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How long a connection is kept that no call uses, milliseconds; shorter than the default of DRAIN_DELAY_MS. */
const idleConnectionMs = 4000;

const maxIdleConnections = 256;
/** Before the second, the third … try, milliseconds. */
const pausesMs = [20, 60, 140, 280] as const;

/** Errors of opening a connection that pass: nobody listens now, or no address is known of anybody. */
const passing: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "ENOTFOUND",
]);

/** An agent for calls to `baseUrl`, which keeps connections. */
export function createPatientAgent(baseUrl: string): Agent {
  const options = { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: idleConnectionMs }; // 2.
  return baseUrl.startsWith("https:") ? new PatientTlsAgent(options) : new PatientAgent(options);
}

/** As Agent calls it back. */
type Connected = (error: Error | null, socket: Duplex) => void;

class PatientAgent extends Agent {
  override createConnection(options: AgentOptions, connected?: Connected): undefined {
    openConnection(options, connected);
  }
}

class PatientTlsAgent extends TlsAgent {
  override createConnection(options: AgentOptions, connected?: Connected): undefined {
    openConnection(options, (error, socket) => {
      const overSocket: RequestOptions & { socket: Duplex } = { ...options, socket };
      connected?.(error, error === null ? (super.createConnection(overSocket) as Duplex) : socket);
    });
  }
}

function openConnection(options: AgentOptions, connected: Connected | undefined, failures = 0): void {
  const socket: Socket = connect(options as NetConnectOpts);
  const onConnect = () => {
    socket.off("error", onError);
    connected?.(null, socket);
  };
  const onError = (error: NodeJS.ErrnoException) => {
    socket.off("connect", onConnect);
    const pauseMs = pausesMs[failures];
    if (pauseMs === undefined || !passing.has(error.code ?? "")) connected?.(error, socket);
    else setTimeout(() => openConnection(options, connected, failures + 1), pauseMs); // 1.
  };
  socket.once("connect", onConnect).once("error", onError);
}
