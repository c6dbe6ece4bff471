import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { type Span, silentSpan } from "../../lib/runtime/span.ts";
import type { Endpoint } from "../catalog/catalog.ts";
import type { TokenUsage } from "../contract.ts";
import type { AttemptEnd, AttemptEndpoint, AttemptRecord } from "./attempt.ts";

type Tried = AttemptRecord<AttemptEndpoint & Pick<Endpoint, "permaslug">>;

/**
 * The spans of one request's attempts, each from its sending to its end. They stay here: vendors do not learn of our
 * traces, which say nothing to them and would let them link the requests of one caller.
 */
export class AttemptSpans {
  readonly #parent: Span;
  readonly #outputType: "speech" | "image";
  #count = 0;
  #running: Span = silentSpan;

  constructor(parent: Span = silentSpan, outputType: "speech" | "image") {
    this.#parent = parent;
    this.#outputType = outputType;
  }

  /** An attempt has lost, or has its first output. */
  attempted(record: Tried): void {
    if (!this.#parent.recording) return;
    this.#count += 1;
    const { endpoint, startedAtMs, firstOutputMs } = record;
    const span = this.#parent.child(`generate_content ${endpoint.permaslug}`, "client", startedAtMs);
    span.set({
      "gen_ai.operation.name": "generate_content",
      "gen_ai.output.type": this.#outputType,
      "gen_ai.provider.name": endpoint.providerSlug,
      "gen_ai.request.model": endpoint.permaslug,
      "gen_ai.response.time_to_first_chunk": firstOutputMs === undefined ? undefined : firstOutputMs / 1000,
      "media.endpoint_id": endpoint.id,
      "media.attempt": this.#count,
      "media.byok": endpoint.ownKey !== undefined,
    });
    this.#running = span;
    if (record.outcome !== Outcome.UNSPECIFIED) this.ended(record);
  }

  /** The last attempt has ended; only the first call for it counts. */
  ended({ outcome, reason, providerStatus = 0 }: AttemptEnd, usage?: TokenUsage): void {
    const span = this.#running;
    if (!span.recording) return;
    span.set({
      "http.response.status_code": providerStatus === 0 ? undefined : providerStatus,
      "gen_ai.usage.input_tokens": usage?.prompt,
      "gen_ai.usage.output_tokens": usage?.completion,
    });
    span.end(reason === undefined ? undefined : wordOfReason(reason), outcome !== Outcome.CANCELLED);
  }
}
