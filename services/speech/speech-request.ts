import type { ProviderPreferences } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import type { AudioFormat } from "../../providers/contract.ts";

/** A text to speak, checked against the contract but not yet against a model. */
export interface SpeechRequest {
  readonly input: string;
  readonly model: string;
  /** How to speak, at least one character; undefined when not given. */
  readonly instructions?: string | undefined;
  /** Undefined: the model's default voice. */
  readonly voice: string | undefined;
  readonly format: AudioFormat;
  /** 0.25 to 4; undefined when not given. */
  readonly speed: number | undefined;
  /** Undefined: no preference. */
  readonly preferences: ProviderPreferences | undefined;
}
