import type { ProviderPreferences } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import type { ImageCall, ImageFormat } from "../../providers/contract.ts";
import type { ReferenceSource } from "./references/references.ts";
import type { SizeRequest } from "./size.ts";

/** A prompt to draw, checked against the contract but not yet against a model. */
export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  readonly size: SizeRequest;
  readonly background: ImageCall["background"];
  /** Neither fetched nor decoded. */
  readonly references: readonly ReferenceSource[];
  /** Where the first reference may change; undefined: everywhere. */
  readonly mask?: ReferenceSource | undefined;
  readonly n: number;
  /** 0 to 100; undefined when not given. */
  readonly compression: number | undefined;
  readonly format: ImageFormat;
  readonly quality: ImageCall["quality"];
  /** Undefined: random. */
  readonly seed: number | undefined;
  /** Whether previews are wanted. */
  readonly stream: boolean;
  /** Most previews of an image; undefined: as many as the endpoint usually gives. */
  readonly partialImages?: number | undefined;
  /** What goes to whichever endpoint lets a parameter of that name through. */
  readonly wishes?: Readonly<Record<string, string>>;
  /** Undefined: no preference. */
  readonly preferences: ProviderPreferences | undefined;
}
