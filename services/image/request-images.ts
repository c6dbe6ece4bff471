import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { ReferenceImage } from "../../providers/contract.ts";
import type { ImageRequest } from "./image-request.ts";
import type { LoadedReferences } from "./plan.ts";
import type { ReferenceSource } from "./references.ts";

/** Fetches and checks images to start from. Throws DomainError whose issues name them as `input_references`. */
export type LoadReferences = (
  sources: readonly ReferenceSource[],
  signal: AbortSignal,
) => Promise<readonly ReferenceImage[]>;

/**
 * Brings in the references of a request and their mask, one after the other, so that no request holds room for the one
 * while it waits for room for the other. Throws what `load` throws, and `reference_refused` for a mask that is no PNG.
 */
export async function loadRequestImages(
  { references, mask }: Pick<ImageRequest, "references" | "mask">,
  load: LoadReferences,
  signal: AbortSignal,
): Promise<LoadedReferences> {
  if (references.length === 0) return { references: [] };
  const loaded = await load(references, signal);
  if (mask === undefined) return { references: loaded };
  return { references: loaded, mask: await loadMask(mask, load, signal) };
}

async function loadMask(
  source: ReferenceSource,
  load: LoadReferences,
  signal: AbortSignal,
): Promise<ReferenceImage | undefined> {
  const [mask] = await load([source], signal).catch((thrown: unknown) => {
    throw thrown instanceof DomainError && thrown.issues.length > 0 ? ofMask(thrown) : thrown;
  });
  if (mask !== undefined && mask.mediaType !== "image/png") {
    const issue = { path: "mask", message: "is not a PNG image, the one kind that masks have" };
    throw DomainError.invalid([issue], ErrorReason.REFERENCE_REFUSED);
  }
  return mask;
}

function ofMask({ reason, message, issues, cause }: DomainError): DomainError {
  const renamed = issues.map((issue) => ({ ...issue, path: "mask" }));
  return new DomainError(reason, message, { issues: renamed, cause });
}
