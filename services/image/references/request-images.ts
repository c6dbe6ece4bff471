import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { ImageRequest } from "../image-request.ts";
import type { LoadedReferences } from "../plan.ts";
import type { CheckedReference } from "./reference-check.ts";
import type { NamedSource } from "./references.ts";

/** Fetches and checks images to start from. Throws DomainError whose issues name them by their paths. */
export type LoadReferences = (
  sources: readonly NamedSource[],
  signal: AbortSignal,
) => Promise<readonly CheckedReference[]>;

/**
 * Brings in the references of a request and their mask at once, so that no request holds room for the one while it waits
 * for room for the other. Throws what `load` throws, and `reference_refused` for a mask that is no PNG.
 */
export async function loadRequestImages(
  { references, mask }: Pick<ImageRequest, "references" | "mask">,
  load: LoadReferences,
  signal: AbortSignal,
): Promise<LoadedReferences> {
  if (references.length === 0) return { references: [] };
  const sources = references.map((source, index) => ({ path: `input_references.${index}`, source }));
  if (mask === undefined) return { references: await load(sources, signal) };
  const loaded = await load([...sources, { path: "mask", source: mask }], signal);
  const loadedMask = loaded[references.length];
  if (loadedMask?.mediaType !== "image/png") {
    const issue = { path: "mask", message: "is not a PNG image, the one kind that masks have" };
    throw DomainError.invalid([issue], ErrorReason.REFERENCE_REFUSED);
  }
  return { references: loaded.slice(0, references.length), mask: loadedMask };
}
