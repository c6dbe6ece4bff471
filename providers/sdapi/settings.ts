import type { ImageCall } from "../contract.ts";
import { type DeclaredEndpoint, SettingsFault } from "../declared-endpoint.ts";
import { isRecord } from "../upstream/failure.ts";

/** Settings of an endpoint. */
export interface SdapiSettings {
  /** Nobody but this process uses the server: its progress and its interrupt are then those of our one job. */
  readonly exclusive: boolean;
  /** Calls that wait for an exclusive server at most. */
  readonly maxWaiting: number;
  /** Draws with whatever checkpoint is loaded, in place of `upstream_model`. */
  readonly loadedModel: boolean;
  /** Sent with every call as they stand. */
  readonly parameters: Fields;
  /** What each quality adds to them. */
  readonly quality: Readonly<Record<string, Fields>>;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What callers may set, by the upstream's names. None of it makes more images or larger ones, runs a script or more
 * steps, or changes what the server keeps.
 */
const openOptions = [
  ...["negative_prompt", "cfg_scale", "distilled_cfg_scale", "sampler_name", "scheduler", "clip_skip"],
  ...["denoising_strength", "eta", "tiling", "restore_faces"],
] as const;

const names = ["exclusive", "max_waiting", "loaded_model", "parameters", "quality"];
const maxWaitingByDefault = 8;

/** Settings as a call carries them; what is missing or of another type is left at its default. */
export function sdapiSettings({ settings }: Pick<ImageCall, "settings">): SdapiSettings {
  const { exclusive, max_waiting, loaded_model, parameters, quality } = settings;
  return {
    exclusive: exclusive === true,
    maxWaiting: typeof max_waiting === "number" ? max_waiting : maxWaitingByDefault,
    loadedModel: loaded_model === true,
    parameters: isRecord(parameters) ? parameters : {},
    quality: isRecord(quality) ? (quality as Record<string, Fields>) : {},
  };
}

/** The options of a call that go to the server: known ones that are a text, a number or a yes. */
export function sentOptions({ options }: Pick<ImageCall, "options">): Fields {
  const sent = openOptions.filter((name) => /^(string|number|boolean)$/.test(typeof options[name]));
  return Object.fromEntries(sent.map((name) => [name, options[name]]));
}

/** Checks the settings of an endpoint as it is declared. Throws SettingsFault. */
export function readSdapiSettings({ settings, passthrough, image }: DeclaredEndpoint) {
  const unknown = Object.keys(settings).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new SettingsFault(`unknown setting ${unknown}`);
  for (const name of ["exclusive", "loaded_model"] as const) {
    if (!/^(undefined|boolean)$/.test(typeof settings[name]))
      throw new SettingsFault(`${name} is true or false`);
  }
  const { max_waiting = maxWaitingByDefault, parameters = {}, quality = {} } = settings;
  if (!Number.isInteger(max_waiting) || Number(max_waiting) < 0 || Number(max_waiting) > 1000) {
    throw new SettingsFault("max_waiting is a whole number up to 1000");
  }
  if (!isRecord(parameters)) throw new SettingsFault("parameters must be fields of a request");
  if (!isRecord(quality) || !Object.values(quality).every(isRecord)) {
    throw new SettingsFault("quality must name fields of a request for each quality");
  }
  const missing = image?.qualities.find((name) => quality[name] === undefined);
  if (missing !== undefined)
    throw new SettingsFault(`quality.${missing} is missing, which image.qualities lists`);
  const closed = passthrough.find((name) => !openOptions.some((open) => open === name));
  if (closed !== undefined) throw new SettingsFault(`${closed} may not be in passthrough`);
  if (image?.streaming === true && settings.exclusive !== true) {
    throw new SettingsFault("image.streaming needs exclusive: true, since progress is the whole server's");
  }
  if (image?.mask === true)
    throw new SettingsFault("image.mask can't be offered: these servers read masks in two ways");
  return Promise.resolve(settings);
}
