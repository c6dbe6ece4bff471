import type { DescMethod } from "@bufbuild/protobuf";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";

/** How large a request message may be. */
export interface RequestLimits {
  readonly maxBytes: number;
  /** Of its texts together; what is above that has to be bytes. */
  readonly maxTextBytes: number;
  /** What may be in it: see wire-bounds.ts and json-bounds.ts. */
  readonly maxElements: number;
}

/** An RPC's requests unless it stands in the table: names, ids, a page, a filter. */
const defaultMaxBytes = 64 << 10;
/** Decoding them holds the event loop. */
const maxTextBytes = 1 << 20;
/** Each takes a microsecond and some 200 bytes. A trace of 16 KiB with the shortest members has 3,000. */
const maxElements = 10_000;
/** Of messages within each other, and of arrays and objects: what the decoder takes. */
export const maxDepth = 100;

type Exception = Partial<Pick<RequestLimits, "maxBytes" | "maxElements">>;

const exceptions: ReadonlyMap<DescMethod, Exception> = new Map<DescMethod, Exception>([
  // References in the message: as much as the service takes.
  [ImageService.method.generate, { maxBytes: Infinity }],
  // A text of as many characters as a model takes, each escaped in JSON.
  [SpeechService.method.synthesize, { maxBytes: 1 << 20 }],
  // Settings of 64 KiB, each byte escaped in JSON.
  [DestinationService.method.createDestination, { maxBytes: 512 << 10 }],
  [DestinationService.method.updateDestination, { maxBytes: 512 << 10 }],
  // Batches of processes of ours. What callers had put into them was counted where it came in, so that none is refused
  // for what is in it: money would stay unsettled.
  [AccountInternalService.method.reserve, { maxBytes: 1 << 20, maxElements: Infinity }],
  [AccountInternalService.method.settle, { maxBytes: 1 << 20, maxElements: Infinity }],
]);

/** What requests of an RPC may be, at a service that takes messages of so many bytes at most. */
export function requestLimitsOf(method: DescMethod, readMaxBytes: number): RequestLimits {
  const exception = exceptions.get(method);
  const maxBytes = Math.min(exception?.maxBytes ?? defaultMaxBytes, readMaxBytes);
  return {
    maxBytes,
    maxTextBytes,
    maxElements: exception?.maxElements ?? maxElements,
  };
}
