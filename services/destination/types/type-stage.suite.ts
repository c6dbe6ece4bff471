import type { JsonObject } from "@bufbuild/protobuf";
import type { Receiver } from "../../../test/upstreams/receivers/receiver.ts";
import type { ReceivedRequest } from "../../../test/upstreams/stand-in/stand-in-server.ts";

/** A type's own receiver, and how to read what it took. */
export interface DestinationTypeStage {
  readonly receiver: Receiver;
  /** Good settings for a receiver at a base URL; for the stand-in's own they lead to it. */
  configAt(baseUrl: string): JsonObject;
  /** The same with credentials that the receiver refuses; left out by a type without credentials. */
  wrongConfigAt?(baseUrl: string): JsonObject;
  /** What a request says of itself. */
  read(request: ReceivedRequest): Promise<ReceivedDelivery> | ReceivedDelivery;
  /** Headers that the type sets and its owner may not; what SettingsReader.headers is given. */
  readonly ownHeaders: readonly string[];
  close?(): Promise<void>;
}

/** What a type put into a request. */
export interface ReceivedDelivery {
  readonly deliveryId: string | undefined;
  readonly events: readonly { readonly eventId: unknown; readonly revision: unknown }[];
}
