/**
 * Codes of Node's errors that say that another process is away: nobody listens, the network or a name is gone, a
 * connection broke at whatever point (while it was opened, written to or read from), what answers is not what was
 * called, or there is no socket left to call with.
 */
const awayCodes =
  /^(ECONN\w+|ECANCELED|EPIPE|ETIMEDOUT|EHOST\w+|ENET\w+|ENOTCONN|EADDRNOTAVAIL|EMFILE|ENFILE|ENOBUFS|ENOTFOUND|EAI_\w+|EPROTO|HPE_\w+|ERR_(STREAM|HTTP2|SSL|TLS|SOCKET)_\w+|CERT_\w+|UNABLE_TO_\w+|(DEPTH_ZERO_)?SELF_SIGNED_CERT\w*)$/;

/** Whether a failure, or what caused it, says that a peer is away: a later try may succeed. */
export function isPeerAway(thrown: unknown): boolean {
  for (let error = thrown, depth = 0; error instanceof Error && depth < maxCauses; depth += 1) {
    if (awayCodes.test(nodeCodeOf(error) ?? "")) return true;
    error = error.cause;
  }
  return false;
}

const maxCauses = 8;

/** The code of an error of Node or of a driver; undefined where it has none. */
export function nodeCodeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { code } = thrown as Error & { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
