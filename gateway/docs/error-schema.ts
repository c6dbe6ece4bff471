import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { stringEnum } from "../schema/field-schemas.ts";

const unshown: readonly ErrorReason[] = [ErrorReason.UNSPECIFIED, ErrorReason.CALLER_NOT_ALLOWED];

/** The closed list of `reason`. */
const reasonWords = Object.values(ErrorReason)
  .filter((reason) => !unshown.includes(reason))
  .map(wordOfReason);

const attemptSchema = Type.Object({
  provider_name: Type.String(),
  endpoint_id: Type.String(),
  status: Type.Union([Type.Integer(), Type.Null()], {
    description: "What the provider answered, if it did.",
  }),
  reason: stringEnum(reasonWords),
});

const metadataSchema = Type.Object({
  reason: stringEnum(reasonWords, { description: "What happened, from a closed list." }),
  issues: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.String({ description: "The field's dotted path; empty: the body as a whole." }),
        message: Type.String(),
      }),
      { description: "With 400: the faults found." },
    ),
  ),
  provider_name: Type.Optional(Type.String()),
  provider_status: Type.Optional(Type.Integer()),
  attempts: Type.Optional(
    Type.Array(attemptSchema, { description: "With 502, 524 and 529: each try at a provider." }),
  ),
  retry_after_s: Type.Optional(Type.Integer({ minimum: 1 })),
});

/** The member `error` of every error, in answers and in event streams. */
export const errorSchema = Type.Object({
  code: Type.Integer({ description: "The HTTP status." }),
  message: Type.String({ description: "The fixed text of the status." }),
  metadata: metadataSchema,
});

/** The body of every error. */
export const errorBodySchema = Type.Object({ error: errorSchema });
