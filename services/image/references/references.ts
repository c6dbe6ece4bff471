/**
 * Brings in the images that a request starts from.
 *
 * 1. What can be refused without the network is refused before anything is fetched.
 * 2. Sizes are those of the bytes as they will be used; all together are counted while they arrive.
 * 3. The first failure, the deadline and the caller's signal each end all fetches at once.
 * 4. Results stand in the order of the request, and every one has been decoded once.
 * 5. Every byte counts in the budget of its key before it is kept, until the life of the call is over; so does what an
 *    abort does not end. Who does not get room in time is answered so: no fault of the request or of its servers.
 * 6. A caller learns what its URL led to only where it led somewhere public: a refused address is answered like any other
 *    failure, so that names and ports inside can't be probed. Only `cause` keeps them apart.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import {
  type GuardedFetch,
  GuardedFetchError,
  type GuardedFetchErrorKind,
} from "../../../lib/http/guarded-fetch.ts";
import { parseFetchUrl } from "../../../lib/http/url-guard.ts";
import type { ByteBudget, ByteShare } from "../../../lib/limits/byte-budget.ts";
import type { CallLife } from "../../../lib/rpc/call-life.ts";
import { DomainError, type Issue } from "../../../lib/runtime/domain-error.ts";
import type { DecodeRoom } from "./decode-budget.ts";
import {
  type CheckedReference,
  type DecodableReference,
  decodeReference,
  ReferenceProblem,
  readReference,
} from "./reference-check.ts";

/** Where a reference comes from. */
export type ReferenceSource =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "url"; readonly url: string };

/** A source and what a request calls it: `input_references.0`, `mask`. */
export interface NamedSource {
  readonly path: string;
  readonly source: ReferenceSource;
}

/** On whose behalf references are loaded. */
export interface ReferenceHolder {
  /** Those of one key share what is there with all others; the same for a key and its successor. */
  readonly key: string;
  /** What is taken of the budgets is given back when it is over. */
  readonly life: Pick<CallLife, "whenOver" | "keepUntil">;
}

/** Of the process, but for `room`, which is the caller's. */
export interface ReferenceDependencies {
  readonly fetch: Pick<GuardedFetch, "fetch">;
  /** Of a process, with shares of `maxReferenceBytes`. */
  readonly budget: ByteBudget;
  /** Where images of the holder's key are decoded. */
  readonly room: DecodeRoom;
  /** Longest time for all fetches of one request; 15 s unless given. */
  readonly timeoutMs?: number;
  /** Longest wait for room before it; 20 s unless given: longer than others may load. */
  readonly roomTimeoutMs?: number;
}

const mebibyte = 1024 * 1024;
const maxBytesEach = 20 * mebibyte;
const fetchesAtOnce = 4;
/** What a fetch finds room for before it begins, so that few begin that then wait. */
const firstBytes = 64 * 1024;
/** Of what is free a key holds half at most, so that it holds no more than half of all with what one request may. */
const keyWeight = 0.5;
/** How long a client should wait after it found no room. */
const retryAfterMs = 1000;

/** Most bytes that the references of one request have together. */
export const maxReferenceBytes = 64 * mebibyte;

const tooLarge = `is larger than ${maxBytesEach / mebibyte} MiB`;
const tooLargeTogether: Issue = {
  path: "input_references",
  message: `are larger than ${maxReferenceBytes / mebibyte} MiB together`,
};

const fetchProblems: Readonly<Record<Exclude<GuardedFetchErrorKind, "aborted">, string>> = {
  url: "is not an http or https URL without credentials",
  address: "could not be fetched", // 6.
  too_large: tooLarge,
  timeout: "could not be fetched in time",
  failed: "could not be fetched",
};

/**
 * Fetches and checks the references of one request. Throws DomainError: `reference_refused` naming each fault found,
 * `service_unavailable` where there was no room for them in time, `cancelled` or `timed_out` when `signal` is aborted.
 */
export async function loadReferences(
  sources: readonly NamedSource[],
  holder: ReferenceHolder,
  dependencies: ReferenceDependencies,
  signal: AbortSignal,
): Promise<CheckedReference[]> {
  refuse(findFaults(sources)); // 1.
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const share = dependencies.budget.open([{ name: holder.key, weight: keyWeight }]);
  holder.life.whenOver(share.release); // 5.
  try {
    const contents = await fetchAll(sources, share, dependencies, ended).catch((thrown: unknown) => {
      share.release();
      throw thrown;
    });
    share.settle(contents.reduce((sum, { bytes }) => sum + bytes.length, 0));
    return await checkAll(contents, dependencies.room, ended, (work) => holder.life.keepUntil(work));
  } catch (thrown) {
    throw signal.aborted ? endedByCaller(signal) : thrown;
  } finally {
    stop.abort(); // 3.
  }
}

/** What is wrong as far as it is known without fetching or decoding. */
function findFaults(sources: readonly NamedSource[]): Issue[] {
  const faults: Issue[] = [];
  for (const { path, source } of sources) {
    if (source.kind === "url") {
      if (parseFetchUrl(source.url) === undefined) faults.push({ path, message: fetchProblems.url });
    } else if (source.bytes.length > maxBytesEach) {
      faults.push({ path, message: tooLarge });
    }
  }
  if (faults.length === 0 && dataBytes(sources) > maxReferenceBytes) return [tooLargeTogether];
  return faults;
}

function dataBytes(sources: readonly NamedSource[]): number {
  return sources.reduce((sum, { source }) => sum + (source.kind === "data" ? source.bytes.length : 0), 0);
}

interface Content {
  readonly path: string;
  readonly bytes: Uint8Array;
}

async function fetchAll(
  sources: readonly NamedSource[],
  share: ByteShare,
  { fetch, timeoutMs = 15_000, roomTimeoutMs = 20_000 }: ReferenceDependencies,
  ended: AbortSignal,
): Promise<Content[]> {
  const contents: Content[] = [];
  let roomBytes = maxReferenceBytes - dataBytes(sources);
  let takenAhead = await takeFirst(sources, share, roomTimeoutMs, ended);
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([ended, deadline]);
  const take = async (bytes: number) => {
    roomBytes -= bytes; // 2.
    if (roomBytes < 0) return false;
    const ahead = Math.min(takenAhead, bytes);
    takenAhead -= ahead;
    if (bytes > ahead) await takeRoom(share, bytes - ahead, signal);
    return true;
  };
  const left = sources.entries();
  const fetchNext = async () => {
    for (const [index, { path, source }] of left) {
      if (source.kind === "data") {
        contents[index] = { path, bytes: source.bytes };
        continue;
      }
      const request = { url: source.url, accept: "image/*", signal, timeoutMs, maxBytes: maxBytesEach, take };
      const content = await fetch.fetch(request).catch((thrown: unknown) => {
        if (!(thrown instanceof GuardedFetchError)) throw thrown;
        if (roomBytes < 0) throw DomainError.invalid([tooLargeTogether], ErrorReason.REFERENCE_REFUSED);
        if (deadline.aborted && share.waited) throw noRoom(thrown);
        throw refused(path, problemOf(thrown, deadline), thrown);
      });
      contents[index] = { path, bytes: content.bytes }; // 4.
    }
  };
  await Promise.all(Array.from({ length: fetchesAtOnce }, fetchNext));
  return contents;
}

/** Takes room for what has come with the request and for the beginning of what is fetched; returns how much of the latter. */
async function takeFirst(
  sources: readonly NamedSource[],
  share: ByteShare,
  timeoutMs: number,
  ended: AbortSignal,
): Promise<number> {
  const fetched = sources.filter(({ source }) => source.kind === "url").length;
  const held = dataBytes(sources);
  const ahead = Math.min(Math.min(fetched, fetchesAtOnce) * firstBytes, maxReferenceBytes - held);
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    await takeRoom(share, held + ahead, AbortSignal.any([ended, deadline]));
  } catch (thrown) {
    throw deadline.aborted ? noRoom(thrown) : thrown;
  }
  return ahead;
}

/** Resolves once there is room. Throws the signal's reason. */
async function takeRoom(share: ByteShare, bytes: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (share.grow(bytes, resolve)) return;
  const giveUp = () => reject(signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  await promise.finally(() => signal.removeEventListener("abort", giveUp));
}

/** Decodes each once; a fault that the headers show is thrown before any is decoded. */
async function checkAll(
  contents: readonly Content[],
  room: DecodeRoom,
  ended: AbortSignal,
  onWork: (work: Promise<void>) => void,
): Promise<CheckedReference[]> {
  const found: { readonly path: string; readonly reference: DecodableReference }[] = [];
  for (const { path, bytes } of contents) {
    found.push({ path, reference: refusing(path, () => readReference(bytes)) });
    // Headers may be as long as their images: others have their turn between two.
    await nextTurn();
    ended.throwIfAborted();
  }
  return await Promise.all(
    found.map(async ({ path, reference }) => {
      await decodeReference(reference, room, ended, onWork).catch((thrown: unknown) => {
        // 4.
        throw asRefusal(path, thrown);
      });
      const { bytes, mediaType, width, height } = reference;
      return { bytes, mediaType, width, height };
    }),
  );
}

function refusing<T>(path: string, check: () => T): T {
  try {
    return check();
  } catch (thrown) {
    throw asRefusal(path, thrown);
  }
}

function asRefusal(path: string, thrown: unknown): unknown {
  return thrown instanceof ReferenceProblem ? refused(path, thrown.message, thrown) : thrown;
}

function noRoom(cause: unknown): DomainError {
  return new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "no room for the references", {
    retryAfterMs,
    cause,
  });
}

function problemOf({ kind }: GuardedFetchError, deadline: AbortSignal): string {
  if (kind !== "aborted") return fetchProblems[kind];
  return deadline.aborted ? fetchProblems.timeout : fetchProblems.failed;
}

function refuse(faults: readonly Issue[]): void {
  if (faults.length > 0) throw DomainError.invalid(faults, ErrorReason.REFERENCE_REFUSED);
}

function refused(path: string, message: string, cause: unknown): DomainError {
  return DomainError.invalid([{ path, message }], ErrorReason.REFERENCE_REFUSED, cause);
}

function endedByCaller({ reason }: AbortSignal): DomainError {
  const timedOut = reason instanceof DOMException && reason.name === "TimeoutError";
  return timedOut
    ? new DomainError(ErrorReason.TIMED_OUT, "deadline exceeded", { cause: reason })
    : new DomainError(ErrorReason.CANCELLED, "cancelled", { cause: reason });
}
