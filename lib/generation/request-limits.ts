import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ProviderPreferences } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import type { Issue } from "../runtime/domain-error.ts";
import { codePoints } from "./code-points.ts";

/** Longest `instructions` of speech, Unicode code points. */
export const maxInstructionsCharacters = 4096;
const maxLabelCharacters = 256;
const maxTraceBytes = 16 * 1024;
const maxOptionsBytes = 64 * 1024;
const maxProviders = 32;
/** PostgreSQL, where these fields end, has no text that holds it. */
const nul = "\u0000";
const withoutNul = "must not contain U+0000";

/** What a generation is kept under in usage records and told of to destinations. */
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
  } else if (holdsNul(trace)) {
    issues.push({ path: "trace", message: withoutNul });
  }
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

function holdsNul(root: JsonValue): boolean {
  const open: JsonValue[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === "string" && value.includes(nul)) return true;
    if (typeof value !== "object" || value === null) continue;
    open.push(...Object.keys(value), ...Object.values(value));
  }
  return false;
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
