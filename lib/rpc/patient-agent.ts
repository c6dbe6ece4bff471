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
import { Agent, buildConnector } from "undici";
import { nodeCodeOf } from "../runtime/peer-away.ts";

/** How long a connection is kept that no call uses, milliseconds; shorter than the default of DRAIN_DELAY_MS. */
const idleConnectionMs = 4000;

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

/** An agent for calls to processes, which keeps connections; `ca` are the authorities to trust, the system's unless given. */
export function createPatientAgent({ ca }: { ca?: Buffer } = {}): Agent {
  return new Agent({
    allowH2: false,
    pipelining: 1,
    connect: patiently(buildConnector({ allowH2: false, ...(ca !== undefined && { ca }) })),
    keepAliveTimeout: idleConnectionMs, // 2.
    keepAliveMaxTimeout: idleConnectionMs,
    // Each call has a deadline of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function patiently(connect: buildConnector.connector): buildConnector.connector {
  const open = (options: buildConnector.Options, opened: buildConnector.Callback, failures: number) =>
    connect(options, (...result) => {
      const pauseMs = pausesMs[failures];
      if (pauseMs === undefined || !passing.has(nodeCodeOf(result[0]) ?? "")) opened(...result);
      else setTimeout(open, pauseMs, options, opened, failures + 1); // 1.
    });
  return (options, opened) => open(options, opened, 0);
}
