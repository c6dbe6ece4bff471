import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ProviderPreferences } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { maxBodyElements } from "../limits/json-bounds.ts";
import type { Issue } from "../runtime/domain-error.ts";
import { codePoints } from "./code-points.ts";

/** Longest `instructions` of speech, Unicode code points. */
export const maxInstructionsCharacters = 4096;
/** How much slower and faster speech may be asked for. */
export const speedRange = { minimum: 0.25, maximum: 4 } as const;
/** Longest `user` and `session_id`, Unicode code points. */
export const maxLabelCharacters = 256;
/** Longest `trace`, bytes as JSON. */
export const maxTraceBytes = 16 * 1024;
/** Longest `provider.options`, bytes as JSON. */
export const maxOptionsBytes = 64 * 1024;
/** Most providers of a list. */
export const maxProviders = 32;
/** PostgreSQL, where these fields end, has no text that holds it. */
const nul = "\u0000";
const withoutNul = "must not contain U+0000";

/** What a generation is kept under in usage records and sent to destinations. */
export interface AttributionFields {
  readonly user: string;
  readonly sessionId: string;
  readonly trace?: JsonObject | undefined;
}

/** What is wrong with `user`, `session_id` and `trace`, by their REST names; empty when nothing is. */
export function attributionIssues({ user, sessionId, trace }: AttributionFields): Issue[] {
  const issues = [...labelIssues("user", user), ...labelIssues("session_id", sessionId)];
  if (trace === undefined) return issues;
  if (jsonBytes(trace) > maxTraceBytes) {
    issues.push({ path: "trace", message: `must be at most ${maxTraceBytes} bytes as JSON` });
    return issues;
  }
  // Account decodes traces by the dozen (account-holds.ts), and each value takes it 1 to 2.5 µs.
  const { values, holdsNul } = walk(trace);
  if (values > maxBodyElements) {
    issues.push({ path: "trace", message: `must not have more than ${maxBodyElements} members and items` });
  }
  if (holdsNul) issues.push({ path: "trace", message: withoutNul });
  return issues;
}

function labelIssues(path: string, text: string): Issue[] {
  const issues: Issue[] = [];
  if (codePoints(text) > maxLabelCharacters) {
    issues.push({ path, message: `must be at most ${maxLabelCharacters} characters` });
  }
  if (text.includes(nul)) issues.push({ path, message: withoutNul });
  return issues;
}

/** How many members and items there are within, and whether a name or a text has U+0000. */
function walk(root: JsonObject): { readonly values: number; readonly holdsNul: boolean } {
  const open: JsonValue[] = [root];
  let [values, holdsNul] = [0, false];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === "string" && value.includes(nul)) holdsNul = true;
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) holdsNul ||= Object.keys(value).some((name) => name.includes(nul));
    for (const member of Object.values(value)) {
      values += 1;
      open.push(member);
    }
  }
  return { values, holdsNul };
}

/** What is wrong with a `provider` object, by REST names; empty when nothing is. */
export function preferenceIssues(preferences: ProviderPreferences | undefined): Issue[] {
  if (preferences === undefined) return [];
  const issues: Issue[] = [];
  for (const list of ["order", "only", "ignore"] as const) {
    if (preferences[list].length > maxProviders) {
      issues.push({ path: `provider.${list}`, message: `must name at most ${maxProviders} providers` });
    }
  }
  if (jsonBytes(preferences.options) > maxOptionsBytes) {
    issues.push({ path: "provider.options", message: `must be at most ${maxOptionsBytes} bytes as JSON` });
  }
  return issues;
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
