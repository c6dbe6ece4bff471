/**
 * Settings of destinations between their owners and the store. Their secrets, the values of `headers` and what may be a
 * token in an address are shown masked; what comes back masked means what is stored.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Issue } from "../../../lib/runtime/domain-error.ts";
import { isMasked, isMaskedUrl, mask, maskUrl, unmaskUrl } from "./masked-url.ts";

const headersName = "headers";

/** Settings as they are shown. `secrets` are the names of those that are masked wholly besides headers. */
export function maskConfig(config: JsonObject, secrets: readonly string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, maskSetting(name, value, secrets)]),
  );
}

function maskSetting(name: string, value: JsonValue, secrets: readonly string[]): JsonValue {
  if (name === headersName && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([header, text]) => [header, maskValue(text)]));
  }
  if (secrets.includes(name)) return maskValue(value);
  return typeof value === "string" ? maskUrl(value) : value;
}

function maskValue(secret: JsonValue): string {
  return mask(typeof secret === "string" ? secret : "");
}

/** What to put over which settings, and where faults go. */
interface ConfigChange {
  readonly stored: JsonObject;
  readonly change: JsonObject;
  readonly secrets: readonly string[];
  readonly issues: Issue[];
}

/**
 * Settings after a change: those it names are replaced, null takes one away. A masked secret, or a masked value of a
 * header or in an address, means the stored one; where none is stored it is an issue.
 */
export function mergeConfig({ stored, change, secrets, issues }: ConfigChange): JsonObject {
  const merged: JsonObject = { ...stored };
  for (const [name, value] of Object.entries(change)) {
    const before = Object.hasOwn(stored, name) ? stored[name] : undefined;
    if (value === null) delete merged[name];
    else if (name === headersName && isObject(value)) {
      merged[name] = unmaskHeaders(value, isObject(before) ? before : {}, issues);
    } else {
      const unmasked = secrets.includes(name) ? unmaskSecret(value, before) : unmaskText(value, before);
      if (unmasked === undefined) issues.push(maskedIssue(name));
      else merged[name] = unmasked;
    }
  }
  return merged;
}

function unmaskSecret(value: JsonValue, before: JsonValue | undefined): JsonValue | undefined {
  return typeof value === "string" && isMasked(value) ? before : value;
}

function unmaskText(value: JsonValue, before: JsonValue | undefined): JsonValue | undefined {
  if (typeof value !== "string" || !isMaskedUrl(value)) return value;
  return typeof before === "string" ? unmaskUrl(value, before) : undefined;
}

function unmaskHeaders(headers: JsonObject, stored: JsonObject, issues: Issue[]): JsonObject {
  const known = new Map(Object.entries(stored).map(([name, value]) => [name.toLowerCase(), value]));
  const entries = Object.entries(headers).flatMap(([name, value]): [string, JsonValue][] => {
    if (typeof value !== "string" || !isMasked(value)) return [[name, value]];
    const before = known.get(name.toLowerCase());
    if (before !== undefined) return [[name, before]];
    issues.push(maskedIssue(`${headersName}.${name.slice(0, 128)}`));
    return [];
  });
  return Object.fromEntries(entries);
}

function maskedIssue(name: string): Issue {
  return { path: `config.${name}`, message: "is masked; give the value itself" };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
