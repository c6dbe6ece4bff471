import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";

/** The `model_unknown` error of a name that is no model of this medium here, whether or not it is one of another. */
export function unknownModel(medium: "speech" | "image"): DomainError {
  const kind = medium === "speech" ? "a speech" : "an image";
  return new DomainError(ErrorReason.MODEL_UNKNOWN, `no ${medium} model of this name`, {
    issues: [{ path: "model", message: `is not ${kind} model of this gateway` }],
  });
}
