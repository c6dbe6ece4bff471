import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { CheckedReference } from "./reference-check.ts";
import type { ReferenceSource } from "./references.ts";
import { type LoadReferences, loadRequestImages } from "./request-images.ts";

const sourceOf = (length: number): ReferenceSource => ({ kind: "data", bytes: new Uint8Array(length) });
const { signal } = new AbortController();

/** Bytes of an odd number are a PNG, others a WebP; none are refused. */
const load: LoadReferences = async (sources) =>
  sources.map(({ path, source }): CheckedReference => {
    const bytes = source.kind === "data" ? source.bytes : new Uint8Array();
    if (bytes.length === 0) {
      throw DomainError.invalid([{ path, message: "is empty" }], ErrorReason.REFERENCE_REFUSED);
    }
    return { bytes, mediaType: bytes.length % 2 === 1 ? "image/png" : "image/webp", width: 1, height: 1 };
  });

test("references and their mask are brought in", async () => {
  const references = [sourceOf(2), sourceOf(3)];
  const loaded = await loadRequestImages({ references, mask: sourceOf(5) }, load, signal);
  expect(loaded.references.map(({ bytes }) => bytes.length)).toEqual([2, 3]);
  expect(loaded.mask).toMatchObject({ mediaType: "image/png" });
  const unmasked = await loadRequestImages({ references, mask: undefined }, load, signal);
  expect(unmasked.mask).toBeUndefined();
});

test("nothing is brought in for a request without", async () => {
  const never: LoadReferences = () => Promise.reject(new Error("asked for"));
  expect(await loadRequestImages({ references: [] }, never, signal)).toEqual({ references: [] });
});

test("all are asked for at once, so that none holds room while another waits for it", async () => {
  const asked: string[][] = [];
  const counted: LoadReferences = async (sources, ...rest) => {
    asked.push(sources.map(({ path }) => path));
    return await load(sources, ...rest);
  };
  await loadRequestImages({ references: [sourceOf(1), sourceOf(2)], mask: sourceOf(1) }, counted, signal);
  expect(asked).toEqual([["input_references.0", "input_references.1", "mask"]]);
});

test.for([
  ["a mask that is no PNG", 1, 2, "mask", "is not a PNG image"],
  ["a mask that is refused", 1, 0, "mask", "is empty"],
  ["a reference that is refused", 0, 1, "input_references.0", "is empty"],
] as const)("%s is named", async ([, reference, mask, path, message]) => {
  const request = { references: [sourceOf(reference)], mask: sourceOf(mask) };
  await expect(loadRequestImages(request, load, signal)).rejects.toMatchObject({
    reason: ErrorReason.REFERENCE_REFUSED,
    issues: [{ path, message: expect.stringContaining(message) }],
  });
});
