import type { ListedVoice, Provider } from "../contract.ts";
import { isRecord } from "../upstream/failure.ts";
import { readJsonObject, send } from "../upstream/send.ts";
import { addressOf, type DialectOptions, headersOf } from "./dialect.ts";

const maxBytes = 4 * 1024 * 1024;
const maxVoices = 1000;

/**
 * Lists voices by a GET, as many servers of this dialect do: `voices` or `data`, of strings or of objects with `id` and
 * perhaps `name`; or of objects with `voices`, which are asked for by their names. What is of another model, is none of
 * these or has no name that fits a catalogue is left out.
 */
export function createVoiceList(
  options: DialectOptions & { readonly path: string },
): NonNullable<Provider["listVoices"]> {
  return async (upstreamModel, { connection, signal }) => {
    const request = {
      method: "GET" as const,
      url: addressOf(options, connection.baseUrl, options.path, upstreamModel),
      headers: { ...headersOf(options, connection.apiKey), accept: "application/json" },
      signal,
    };
    const response = await send(options.http, request, {
      secrets: [connection.apiKey],
      nowMs: options.nowMs,
    });
    const { voices, data } = await readJsonObject(response, signal, maxBytes);
    const items = [voices, data].find(Array.isArray) ?? [];
    const listed = items.filter(isOfModel(upstreamModel)).flatMap(toVoices);
    return [...new Map(listed.map((voice) => [voice.id, voice])).values()].slice(0, maxVoices);
  };
}

/** Lists of several models name the model of each voice. */
function isOfModel(model: string): (item: unknown) => boolean {
  return (item) => !isRecord(item) || typeof item.model !== "string" || item.model === model;
}

function toVoices(item: unknown): readonly ListedVoice[] {
  if (typeof item === "string") return isName(item) ? [{ id: item, name: "" }] : [];
  if (!isRecord(item)) return [];
  if (Array.isArray(item.voices)) return item.voices.flatMap(byName);
  const id = [item.id, item.voice_id, item.name].find(isName);
  const name = isName(item.name) && item.name !== id ? item.name : "";
  return id === undefined ? [] : [{ id, name }];
}

function byName(voice: unknown): readonly ListedVoice[] {
  return isRecord(voice) && isName(voice.name) ? [{ id: voice.name, name: "" }] : [];
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 200;
}
