import { createHash } from "node:crypto";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type GenerationEvent, GenerationEventSchema } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  type ActivityItem,
  ActivityItemSchema,
  type RecordBillingSchema,
  type SeriesPointSchema,
  type UsageRecordSummary,
  UsageRecordSummarySchema,
} from "../../gen/media/usage/v1/usage_pb.ts";
import { bytesOfEvent, endedAtMs } from "../../lib/events/event-message.ts";
import type { ActivityEntry } from "./activity.ts";
import { amountsOf, firstByteMsOf, firstByteNames } from "./amounts.ts";
import { dayNumberOfMs, dayOfMs, hourOfMs } from "./day.ts";
import type { SeriesEntry } from "./series.ts";
import { type ListingRow, type NamingRow, noMember, type RecordRow } from "./store.ts";

/** An event as it is stored. */
export interface StorableEvent {
  readonly row: RecordRow;
  readonly naming: NamingRow;
  readonly listing: ListingRow;
  readonly bytes: Uint8Array;
}

/** The largest count of tokens and the largest amount, nano-USD, that an event may state: sums stay far from 2^63. */
const maxAmount = 10n ** 15n;

/** The last millisecond of the year 9999. */
const lastMs = 253_402_300_799_999;

/** Why an event can't be stored, in words, beyond what every consumer checks; undefined when it can. */
export function storageFault(event: GenerationEvent): string | undefined {
  const endedMs = endedAtMs(event);
  if (!(endedMs >= 0 && endedMs <= lastMs)) return "ended_at lies outside of the years 1970 to 9999";
  const amounts = [...Object.values(amountsOf(event)), event.listPriceNanoUsd];
  if (amounts.some((amount) => amount < 0n || amount > maxAmount))
    return "an amount lies outside of 0 to 10^15";
  return undefined;
}

/** Turns events without a fault into rows; one instance serves a batch, whose events share few namings. */
export class RowWriter {
  readonly #namings = new Map<string, NamingRow>();
  readonly #days = new Map<number, string>();

  toRowRecord(event: GenerationEvent, bytes = bytesOfEvent(event)): StorableEvent {
    const endedMs = endedAtMs(event);
    const naming = this.#namingOf(event);
    const row = {
      event_id: event.eventId,
      revision: event.revision,
      account_id: event.accountId,
      ended_at: new Date(endedMs),
      day: this.#dayOf(endedMs),
      hour: hourOfMs(endedMs),
      endpoint_id: event.endpointId,
      key_hash: event.keyHash,
      member_id: event.memberId === "" ? noMember : event.memberId,
      naming_id: naming.id,
      ...amountsOf(event),
    };
    return { row, naming, listing: toRowListing(event), bytes };
  }

  #dayOf(ms: number): string {
    const number = dayNumberOfMs(ms);
    let day = this.#days.get(number);
    if (day === undefined) {
      day = dayOfMs(ms);
      this.#days.set(number, day);
    }
    return day;
  }

  #namingOf({ model, modelPermaslug, providerName }: GenerationEvent): NamingRow {
    const key = `${model.length} ${modelPermaslug.length} ${model}${modelPermaslug}${providerName}`;
    let naming = this.#namings.get(key);
    if (naming === undefined) {
      naming = {
        id: namingId(key),
        model: toStorableText(model),
        permaslug: toStorableText(modelPermaslug),
        provider_name: toStorableText(providerName),
      };
      this.#namings.set(key, naming);
    }
    return naming;
  }
}

/** What an event without a fault is listed by. */
export function toRowListing(event: GenerationEvent): ListingRow {
  const { memberId, sessionId } = event;
  return {
    event_id: event.eventId,
    revision: event.revision,
    account_id: event.accountId,
    ended_at: new Date(endedAtMs(event)),
    model: toListedText(event.model),
    provider: toListedText(event.providerSlug),
    key_hash: event.keyHash,
    member_id: memberId === "" ? null : memberId,
    session_id: sessionId === "" ? null : toListedText(sessionId),
    outcome: event.outcome,
    first_byte_ms: firstByteMsOf(event),
  };
}

/** A text as it is listed: short enough for an index, whatever the event says. */
export function toListedText(text: string): string {
  return toStorableText(text.slice(0, 512));
}

/** PostgreSQL's text has no character zero. */
function toStorableText(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

/** The same for the same names in every process. */
function namingId(key: string): string {
  const hex = createHash("sha256").update(key).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    "-",
  );
}

/** The event of a record. */
export function fromRowEvent({ event }: { readonly event: Uint8Array }): GenerationEvent {
  return fromBinary(GenerationEventSchema, event);
}

/** What of a record reconciliation needs. */
export interface SummarizedRow
  extends Pick<RecordRow, "event_id" | "revision" | "account_id" | "charged_nano_usd" | "day"> {
  /** Null where billing is not asked for. */
  readonly event: Uint8Array | null;
}

/** A record as operators list it. */
export function toProtoSummary(row: SummarizedRow): UsageRecordSummary {
  return create(UsageRecordSummarySchema, {
    eventId: row.event_id,
    revision: row.revision,
    accountId: row.account_id,
    costNanoUsd: row.charged_nano_usd,
    date: row.day,
    ...(row.event === null ? {} : { billing: billingOf(fromRowEvent({ event: row.event })) }),
  });
}

function billingOf(event: GenerationEvent): MessageInitShape<typeof RecordBillingSchema> {
  const { endpointId, providerSlug, model, byok, units, listPriceNanoUsd, providerReport } = event;
  return {
    endpointId,
    providerSlug,
    model,
    byok,
    inputCharacters: units?.inputCharacters ?? 0n,
    listPriceNanoUsd,
    ...(providerReport !== undefined && { reported: providerReport }),
  };
}

/** What an endpoint did on a day, as it is shown. */
export function toProtoActivityItem(entry: ActivityEntry): ActivityItem {
  return create(ActivityItemSchema, {
    date: entry.day,
    endpointId: entry.endpoint_id,
    model: entry.model,
    modelPermaslug: entry.permaslug,
    providerName: entry.provider_name,
    requests: entry.requests,
    promptTokens: entry.prompt_tokens,
    completionTokens: entry.completion_tokens,
    reasoningTokens: entry.reasoning_tokens,
    cachedTokens: entry.cached_tokens,
    usageNanoUsd: entry.charged_nano_usd,
    byokUsageInferenceNanoUsd: entry.byok_list_nano_usd,
  });
}

/** What happened in a step of a series, as it is shown. */
export function toProtoSeriesPoint(entry: SeriesEntry): MessageInitShape<typeof SeriesPointSchema> {
  return {
    startsAt: timestampFromDate(entry.starts_at),
    group: entry.group,
    requests: entry.requests,
    errors: entry.errors,
    promptTokens: entry.prompt_tokens,
    completionTokens: entry.completion_tokens,
    reasoningTokens: entry.reasoning_tokens,
    cachedTokens: entry.cached_tokens,
    usageNanoUsd: entry.charged_nano_usd,
    byokUsageInferenceNanoUsd: entry.byok_list_nano_usd,
    firstByteCounts: firstByteNames.map((name) => entry[name]),
  };
}
