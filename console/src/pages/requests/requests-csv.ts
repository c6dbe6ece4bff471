import type { CsvColumn } from "../../kit/csv.ts";
import { decimalUsd, nanoUsdOf } from "../../kit/money.ts";
import type { Generation } from "./requests-query.ts";

/** How many rows a file has at most: 100 pages, each of which is a call. */
export const mostCsvRows = 10_000;

const usd = (amount: number) => decimalUsd(nanoUsdOf(amount));

/** The columns of the file, by the names that the interface has for them. Amounts are exact decimals. */
export const csvColumns: readonly CsvColumn<Generation>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "created_at", value: ({ created_at }) => created_at },
  { title: "ended_at", value: ({ ended_at }) => ended_at },
  { title: "api_type", value: ({ api_type }) => api_type },
  { title: "model", value: ({ model }) => model },
  { title: "provider_slug", value: ({ provider_slug }) => provider_slug },
  { title: "endpoint_id", value: ({ endpoint_id }) => endpoint_id },
  { title: "outcome", value: ({ outcome }) => outcome },
  { title: "reason", value: ({ reason }) => reason },
  { title: "attempts", value: ({ provider_responses }) => provider_responses.length },
  { title: "latency_ms", value: ({ latency }) => latency },
  { title: "first_byte_latency_ms", value: ({ first_byte_latency }) => first_byte_latency },
  { title: "input_characters", value: ({ units }) => units.input_characters },
  { title: "output_audio_ms", value: ({ units }) => units.output_audio_ms },
  { title: "output_images", value: ({ units }) => units.output_images },
  { title: "output_pixels", value: ({ units }) => units.output_pixels },
  { title: "input_images", value: ({ units }) => units.input_images },
  { title: "tokens_prompt", value: ({ tokens_prompt }) => tokens_prompt },
  { title: "tokens_completion", value: ({ tokens_completion }) => tokens_completion },
  { title: "usage_usd", value: ({ usage }) => usd(usage) },
  { title: "list_price_usd", value: ({ list_price }) => usd(list_price) },
  { title: "is_byok", value: ({ is_byok }) => is_byok },
  { title: "api_key_hash", value: ({ api_key_hash }) => api_key_hash },
  { title: "api_key_name", value: ({ api_key_name }) => api_key_name },
  { title: "user_id", value: ({ user_id }) => user_id },
  { title: "session_id", value: ({ session_id }) => session_id },
  { title: "external_user", value: ({ external_user }) => external_user },
  { title: "request_id", value: ({ request_id }) => request_id },
];
