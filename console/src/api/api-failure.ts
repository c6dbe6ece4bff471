/** The body of every error of the interface. */
export interface ErrorBody {
  readonly error: {
    readonly code: number;
    readonly message: string;
    readonly metadata?: {
      readonly reason?: string;
      readonly issues?: readonly { readonly path: string; readonly message: string }[];
      readonly retry_after_s?: number;
      readonly provider_name?: string;
      readonly provider_status?: number;
    };
  };
}

/** A call that was refused or failed, or that reached nobody. */
export class ApiFailure extends Error {
  /** The error of the answer, where it has the interface's shape. */
  readonly detail: ErrorBody["error"] | undefined;
  /** Undefined when nobody answered. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;

  constructor(body: unknown, response: Response | undefined, options?: ErrorOptions) {
    const detail = isErrorBody(body) ? body.error : undefined;
    super(detail?.message ?? "The gateway gave no answer that this page can read", options);
    this.name = "ApiFailure";
    this.detail = detail;
    this.status = response?.status;
    this.requestId = response?.headers.get("x-request-id") ?? undefined;
  }

  /** The stable word for what happened. */
  get reason(): string | undefined {
    return this.detail?.metadata?.reason;
  }
}

/** Whether a value has the shape of an error of the interface. */
export function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const { error } = value;
  return typeof error === "object" && error !== null && "code" in error && "message" in error;
}

const reasonSentences: Readonly<Record<string, string>> = {
  key_missing: "No key was sent.",
  key_unknown: "The gateway does not know this key.",
  key_expired: "This key has expired.",
  key_disabled: "This key was disabled.",
  scope_missing: "This key may not do that: it lacks the scope.",
  inference_key_required: "This needs an inference key.",
  management_key_required: "This needs a management key.",
  credits_exhausted: "The account has not enough credit for this.",
  key_limit_reached: "This key has reached its limit.",
  rate_limited: "Too many requests in a short time.",
  too_many_in_flight: "Too many of this key's requests are under way.",
  overloaded: "The gateway has as much to do as it can carry.",
  content_policy: "The provider refused the content.",
  provider_credentials: "The provider did not accept the key that the gateway has for it.",
  provider_overloaded: "The provider is overloaded.",
  provider_failed: "The provider failed.",
  timed_out: "It took too long.",
  service_unavailable: "A part of the gateway can't be reached.",
  model_unknown: "The gateway does not know this model.",
  no_endpoint_left: "No provider is left that could serve this.",
};

/** What a failure means, in a sentence for people. */
export function failureSentence(failure: unknown): string {
  if (!(failure instanceof ApiFailure)) return "Something in this page went wrong.";
  if (failure.status === undefined) return "The gateway can't be reached. Is it running?";
  return reasonSentences[failure.reason ?? ""] ?? `${failure.message}.`;
}

/** What a key was refused for, in a sentence. */
export function refusalSentence(reason: string): string {
  return reasonSentences[reason] ?? "The gateway does not accept this key.";
}
