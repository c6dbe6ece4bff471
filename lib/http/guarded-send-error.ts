import { errors } from "undici";
import { OutboundHttpError } from "./outbound-error.ts";
import { AddressRefusedError } from "./url-guard.ts";

const messages = {
  /** Not an http(s) URL, or one with credentials: nothing was sent. */
  url: "The URL is not one that may be called.",
  /** It leads to an address that is not allowed: nothing was sent. */
  address: "The URL leads to an address that may not be connected to.",
  /** The name is not known: nothing was sent. */
  name: "The name is not known.",
  refused: "The connection was refused.",
  /** No connection was made for another reason: no route, or too slow. */
  connect: "No connection could be made.",
  certificate: "The certificate is not trusted.",
  tls: "No TLS connection could be made.",
  reset: "The connection broke before the answer was whole.",
  protocol: "The answer breaks the HTTP protocol.",
  /** Ended by the request's own signal. */
  aborted: "The request was ended from this side.",
} as const;

/** How a guarded sending failed. */
export type GuardedSendErrorKind = keyof typeof messages;

/** The one error of guarded sendings. Its message is fixed by its kind; addresses and details are in `cause` only. */
export class GuardedSendError extends Error {
  override readonly name = "GuardedSendError";
  readonly kind: GuardedSendErrorKind;

  constructor(kind: GuardedSendErrorKind, cause?: unknown) {
    super(messages[kind], cause === undefined ? undefined : { cause });
    this.kind = kind;
  }

  /** Translates what the HTTP client threw. */
  static from(thrown: unknown): GuardedSendError {
    if (thrown instanceof GuardedSendError) return thrown;
    const cause = thrown instanceof OutboundHttpError ? thrown.cause : thrown;
    return new GuardedSendError(kindOf(cause), cause);
  }
}

const kindOfCode: Readonly<Record<string, GuardedSendErrorKind>> = {
  ENOTFOUND: "name",
  EAI_AGAIN: "name",
  ECONNREFUSED: "refused",
  EHOSTUNREACH: "connect",
  ENETUNREACH: "connect",
  EADDRNOTAVAIL: "connect",
  ETIMEDOUT: "connect",
  EPROTO: "tls",
  HOSTNAME_MISMATCH: "certificate",
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate",
};

/** Names of OpenSSL's reasons not to trust a certificate, as Node.js reports them. */
const certificateCode =
  /^(UNABLE_TO_|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|ERROR_IN_C|INVALID_(CA|PURPOSE)|PATH_LENGTH_)/;

function kindOf(thrown: unknown): GuardedSendErrorKind {
  if (thrown instanceof AddressRefusedError) return "address";
  if (thrown instanceof errors.ConnectTimeoutError) return "connect";
  if (thrown instanceof errors.HeadersOverflowError) return "protocol";
  // To the client a chunked body that ends early is input that does not parse.
  if (thrown instanceof errors.HTTPParserError) return /\bEOF\b/.test(thrown.message) ? "reset" : "protocol";
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  if (certificateCode.test(code)) return "certificate";
  if (/^ERR_(SSL|TLS)_/.test(code)) return kindOfCode[code] ?? "tls";
  return kindOfCode[code] ?? "reset";
}
