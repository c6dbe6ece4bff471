import { blackForestLabs } from "./black-forest-labs/index.ts";
import { byteplus } from "./byteplus/index.ts";
import { cartesia } from "./cartesia/index.ts";
import { comfyui } from "./comfyui/index.ts";
import type { ProviderManifest } from "./contract.ts";
import { deepgram } from "./deepgram/index.ts";
import { elevenlabs } from "./elevenlabs/index.ts";
import { fal } from "./fal/index.ts";
import { gemini } from "./gemini/index.ts";
import { lmnt } from "./lmnt/index.ts";
import { local } from "./local/index.ts";
import { minimax } from "./minimax/index.ts";
import { mistral } from "./mistral/index.ts";
import { openai } from "./openai/index.ts";
import { recraft } from "./recraft/index.ts";
import { sdapi } from "./sdapi/index.ts";
import { xai } from "./xai/index.ts";

/** The providers that are built in. A new one is a folder, a catalogue file and a line here. */
export const builtInProviders: readonly ProviderManifest[] = [
  local,
  openai,
  gemini,
  elevenlabs,
  deepgram,
  cartesia,
  lmnt,
  blackForestLabs,
  xai,
  recraft,
  mistral,
  minimax,
  sdapi,
  comfyui,
  byteplus,
  fal,
];
