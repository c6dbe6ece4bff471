import { timestampDate } from "@bufbuild/protobuf/wkt";
import Type, { type Static } from "typebox";
import type { EndpointFailure, EndpointHealth } from "../../gen/media/routing/v1/endpoint_health_pb.ts";
import { nullableNumber, stringEnum } from "../schema/field-schemas.ts";

const failureSchema = Type.Object(
  {
    kind: Type.String({
      description: "`credentials`, `overloaded`, `timeout`, `network`, `upstream` or `bad_answer`.",
    }),
    at: Type.String({ format: "date-time" }),
  },
  { description: "The last failure since the process began; null: none." },
);

/** How attempts ended lately. */
export const outcomesFields = {
  attempts: Type.Integer({ minimum: 0, description: "How many ended in the last half hour." }),
  error_share: nullableNumber({
    minimum: 0,
    maximum: 1,
    description: "Those of them that failed for a reason of the provider's; null: there were none.",
  }),
  last_error: Type.Union([failureSchema, Type.Null()]),
};

/** What every answer about health says of itself. */
export const seenByOneProcess =
  "What the process that answers has lately seen; other processes may have seen other things.";

const average = (description: string) =>
  nullableNumber({
    minimum: 0,
    description: `${description}, a moving average; null: nothing within ten minutes.`,
  });

/** How an endpoint has lately fared. */
export const endpointHealthSchema = Type.Object(
  {
    breaker: stringEnum(["closed", "open"], {
      description: "Open: it is left alone after failures in a row, for some seconds.",
    }),
    ...outcomesFields,
    first_output_ms: average("Milliseconds from sending to the first output"),
    units_per_second: average("Input characters (speech) or images a second"),
  },
  { description: seenByOneProcess },
);

/** How an endpoint has lately fared, as it is shown. */
export function toEndpointHealth(health: EndpointHealth | undefined): Static<typeof endpointHealthSchema> {
  const { breakerOpen = false, ended = 0n, failed = 0n, lastFailure } = health ?? {};
  return {
    breaker: breakerOpen ? "open" : "closed",
    ...toOutcomes({ ended, failed, lastFailure }),
    first_output_ms: health?.firstOutputMs ?? null,
    units_per_second: health?.unitsPerSecond ?? null,
  };
}

interface Outcomes {
  readonly ended: bigint;
  readonly failed: bigint;
  readonly lastFailure?: EndpointFailure | undefined;
}

/** How attempts ended, as it is shown. */
export function toOutcomes({ ended, failed, lastFailure }: Outcomes) {
  const { kind = "", at } = lastFailure ?? {};
  return {
    attempts: Number(ended),
    error_share: ended === 0n ? null : Number(failed) / Number(ended),
    last_error: at === undefined ? null : { kind, at: timestampDate(at).toISOString() },
  };
}
