import type { ProviderPreferences } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import type { Endpoint } from "../catalog/catalog.ts";

/** What of a caller's provider options goes to an endpoint. */
export interface PassedThrough {
  readonly options: Readonly<Record<string, unknown>>;
  /** The REST names of those that don't. */
  readonly ignored: readonly string[];
}

/** The options for the endpoint's provider whose keys its catalogue entry allows; those for others are not its affair. */
export function passedThrough(
  { providerSlug, passthrough }: Pick<Endpoint, "providerSlug" | "passthrough">,
  preferences: Pick<ProviderPreferences, "options"> | undefined,
): PassedThrough {
  const options: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(preferences?.options[providerSlug] ?? {})) {
    if (passthrough.includes(name)) options[name] = value;
    else ignored.push(`provider.options.${providerSlug}.${name}`);
  }
  return { options, ignored };
}

/**
 * How much text an upstream may find in options and bill for, Unicode code points: all strings in them and the names of
 * what they hold.
 */
export function textCharactersOf(options: Readonly<Record<string, unknown>>): number {
  const open: unknown[] = Object.values(options);
  let characters = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") characters += codePoints(value);
    else if (Array.isArray(value)) for (const item of value) open.push(item);
    else if (typeof value === "object" && value !== null) {
      for (const [name, item] of Object.entries(value)) open.push(name, item);
    }
  }
  return characters;
}
