/**
 * Brings in the images that a request starts from.
 *
 * 1. What can be refused without the network is refused before anything is fetched.
 * 2. Sizes are those of the bytes as they will be used; all together are counted while they arrive.
 * 3. The first failure, the deadline and the caller's signal each end all fetches at once.
 * 4. Results stand in the order of the request, and every one has been decoded once.
 */
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type GuardedFetch,
  GuardedFetchError,
  type GuardedFetchErrorKind,
} from "../../lib/http/guarded-fetch.ts";
import { parseFetchUrl } from "../../lib/http/url-guard.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { ReferenceImage } from "../../providers/contract.ts";
import type { PixelBudget } from "./pixel-budget.ts";
import { checkReference, ReferenceProblem } from "./reference-check.ts";

/** Where a reference comes from. */
export type ReferenceSource =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "url"; readonly url: string };

/** What loading references works with. */
export interface ReferenceDependencies {
  readonly fetch: Pick<GuardedFetch, "fetch">;
  readonly budget: PixelBudget;
  /** Longest time for all fetches of one request; 15 s unless given. */
  readonly timeoutMs?: number;
}

const mebibyte = 1024 * 1024;
const maxReferences = 16;
const maxBytesEach = 20 * mebibyte;
const maxBytesTogether = 64 * mebibyte;
const fetchesAtOnce = 4;

const tooLarge = `is larger than ${maxBytesEach / mebibyte} MiB`;
const tooLargeTogether: Issue = {
  path: "input_references",
  message: `are larger than ${maxBytesTogether / mebibyte} MiB together`,
};

const fetchProblems: Readonly<Record<Exclude<GuardedFetchErrorKind, "aborted">, string>> = {
  url: "is not an http or https URL without credentials",
  address: "address is not public",
  too_large: tooLarge,
  timeout: "could not be fetched in time",
  failed: "could not be fetched",
};

/**
 * Fetches and checks the references of one request. Throws DomainError: `reference_refused` naming each fault found,
 * `cancelled` or `timed_out` when `signal` is aborted.
 */
export async function loadReferences(
  sources: readonly ReferenceSource[],
  dependencies: ReferenceDependencies,
  signal: AbortSignal,
): Promise<ReferenceImage[]> {
  refuse(findFaults(sources));
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  try {
    const contents = await fetchAll(sources, dependencies, ended);
    return await Promise.all(
      contents.map((bytes, index) =>
        checkReference(bytes, dependencies.budget, ended).catch((thrown: unknown) => {
          throw thrown instanceof ReferenceProblem ? refused(index, thrown.message, thrown) : thrown;
        }),
      ),
    );
  } catch (thrown) {
    throw signal.aborted ? endedByCaller(signal) : thrown;
  } finally {
    stop.abort();
  }
}

/** What is wrong as far as it can be told without fetching or decoding. */
function findFaults(sources: readonly ReferenceSource[]): Issue[] {
  if (sources.length > maxReferences) {
    return [{ path: "input_references", message: `has more than ${maxReferences} items` }];
  }
  const faults: Issue[] = [];
  for (const [index, source] of sources.entries()) {
    if (source.kind === "url") {
      if (parseFetchUrl(source.url) === undefined) faults.push(issue(index, fetchProblems.url));
    } else if (source.bytes.length > maxBytesEach) {
      faults.push(issue(index, tooLarge));
    }
  }
  if (faults.length === 0 && dataBytes(sources) > maxBytesTogether) return [tooLargeTogether];
  return faults;
}

function dataBytes(sources: readonly ReferenceSource[]): number {
  return sources.reduce((sum, source) => sum + (source.kind === "data" ? source.bytes.length : 0), 0);
}

async function fetchAll(
  sources: readonly ReferenceSource[],
  { fetch, timeoutMs = 15_000 }: ReferenceDependencies,
  ended: AbortSignal,
): Promise<Uint8Array[]> {
  const contents: Uint8Array[] = [];
  let roomBytes = maxBytesTogether - dataBytes(sources);
  const take = (bytes: number) => {
    roomBytes -= bytes;
    return roomBytes >= 0;
  };
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([ended, deadline]);
  const left = sources.entries();
  const fetchNext = async () => {
    for (const [index, source] of left) {
      if (source.kind === "data") {
        contents[index] = source.bytes;
        continue;
      }
      const request = { url: source.url, accept: "image/*", signal, timeoutMs, maxBytes: maxBytesEach, take };
      const content = await fetch.fetch(request).catch((thrown: unknown) => {
        if (!(thrown instanceof GuardedFetchError)) throw thrown;
        if (roomBytes < 0) throw DomainError.invalid([tooLargeTogether], ErrorReason.REFERENCE_REFUSED);
        throw refused(index, problemOf(thrown, deadline), thrown);
      });
      contents[index] = content.bytes;
    }
  };
  await Promise.all(Array.from({ length: fetchesAtOnce }, fetchNext));
  return contents;
}

function problemOf({ kind }: GuardedFetchError, deadline: AbortSignal): string {
  if (kind !== "aborted") return fetchProblems[kind];
  return deadline.aborted ? fetchProblems.timeout : fetchProblems.failed;
}

function issue(index: number, message: string): Issue {
  return { path: `input_references.${index}`, message };
}

function refuse(faults: readonly Issue[]): void {
  if (faults.length > 0) throw DomainError.invalid(faults, ErrorReason.REFERENCE_REFUSED);
}

function refused(index: number, problem: string, cause: unknown): DomainError {
  const fault = issue(index, problem);
  return new DomainError(ErrorReason.REFERENCE_REFUSED, `${fault.path}: ${fault.message}`, {
    issues: [fault],
    cause,
  });
}

function endedByCaller({ reason }: AbortSignal): DomainError {
  const timedOut = reason instanceof DOMException && reason.name === "TimeoutError";
  return timedOut
    ? new DomainError(ErrorReason.TIMED_OUT, "deadline exceeded", { cause: reason })
    : new DomainError(ErrorReason.CANCELLED, "cancelled", { cause: reason });
}
