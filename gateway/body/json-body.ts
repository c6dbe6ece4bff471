import type { IncomingHttpHeaders } from "node:http";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { maxBodyElements } from "../../lib/limits/json-bounds.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { findOversize, joinPath } from "./schema-size.ts";

/** `application/json`, perhaps with parameters (RFC 9110, 8.3.1); another charset than UTF-8 is none of it. */
const jsonType = /^application\/json[ \t]*(?:;.*)?$/i;
const otherCharset = /;[ \t]*charset=(?!"?utf-?8"?[ \t]*(?:;|$))/i;
/** Text of an escape that may stand for half a surrogate pair. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;
const maxPathLength = 200;
const decoder = new TextDecoder("utf-8", { fatal: true });

/** What holds of every JSON body, as options of its schema. */
export const bodyRules = {
  maxProperties: maxBodyElements,
  description:
    "Unknown members are ignored. Null counts as absent, unless a member's schema gives null a meaning of its own.",
} as const;

/** A JSON object as a request brings it. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The object that a body holds. Throws invalid_body when the content type is not JSON, the bytes are not UTF-8, the
 * text does not parse, or its value is no object; the message says which and quotes nothing.
 */
export function parseJsonBody(body: Buffer, headers: IncomingHttpHeaders): JsonObject {
  checkJsonHeaders(headers);
  return parseJsonObject(body);
}

/** Throws invalid_body when a body is not said to be plain JSON in UTF-8. */
export function checkJsonHeaders(headers: IncomingHttpHeaders): void {
  const contentType = headers["content-type"] ?? "";
  if (!jsonType.test(contentType) || otherCharset.test(contentType)) {
    throw invalidBody("the content type must be application/json in UTF-8");
  }
  if (!["", "identity"].includes(headers["content-encoding"] ?? "")) {
    throw invalidBody("a content encoding is not supported");
  }
}

/** The object of a JSON text. Throws invalid_body. */
export function parseJsonObject(text: Buffer): JsonObject {
  const value = parse(decode(text));
  if (!isObject(value)) throw invalidBody("must be a JSON object");
  return value;
}

function decode(body: Buffer): string {
  try {
    return decoder.decode(body);
  } catch (thrown) {
    throw invalidBody("must be UTF-8", thrown);
  }
}

function parse(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidBody("must be JSON");
  }
  if (surrogateEscape.test(text) && !hasWholeCharacters(value)) throw invalidBody("must be valid Unicode");
  return value;
}

function hasWholeCharacters(root: unknown): boolean {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string" && !value.isWellFormed()) return false;
    if (typeof value !== "object" || value === null) continue;
    for (const [key, member] of Object.entries(value)) open.push(key, member);
  }
  return true;
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object without the members that are null: in a request, null counts as absent. */
export function withoutNulls(object: JsonObject): JsonObject {
  const members = Object.entries(object);
  if (!members.some(([, value]) => value === null)) return object;
  return Object.fromEntries(members.filter(([, value]) => value !== null));
}

/**
 * Makes the check of a schema: it returns the value itself, with nothing converted, filled in or taken away, or throws
 * invalid_body with one issue for each fault. A list or map with too many members has that fault alone, since faults
 * are looked for in every member.
 */
export function compileCheck<S extends TSchema>(
  schema: S,
  patternWords: PatternWords = {},
): (value: unknown) => Static<S> {
  const validator = Compile(schema);
  return (value) => {
    if (validator.Check(value)) return value as Static<S>;
    const oversize = findOversize(schema, value);
    if (oversize !== undefined) throw DomainError.invalid([oversize]);
    throw DomainError.invalid(issuesOf(validator.Errors(value), patternWords));
  };
}

/** What to say, by path, of a text that is not as it must be, however long; `*` stands for the place in a list. */
type PatternWords = Readonly<Record<string, string>>;

const keywordsOfTexts: readonly string[] = ["pattern", "format", "minLength"];

type SchemaError = ReturnType<ReturnType<typeof Compile<TSchema>>["Errors"]>[number];

/** Each issue once: a text may miss its pattern and its format for the same reason. */
function issuesOf(errors: readonly SchemaError[], patternWords: PatternWords): readonly Issue[] {
  const issues = errors.flatMap((error) => toIssues(error, patternWords));
  return [...new Map(issues.map((issue) => [JSON.stringify(issue), issue])).values()];
}

function toIssues(error: SchemaError, patternWords: PatternWords): readonly Issue[] {
  const path = dottedPath(error.instancePath);
  switch (error.keyword) {
    case "required":
      return error.params.requiredProperties.map((name) => ({
        path: joinPath(path, name),
        message: "is required",
      }));
    case "enum":
      return [{ path, message: `must be one of ${error.params.allowedValues.map(String).join(", ")}` }];
    case "additionalProperties":
      // Said of a map whose members have faults; each of them has an issue of its own.
      return [];
    default: {
      const words = keywordsOfTexts.includes(error.keyword)
        ? patternWords[path.replace(/\b\d+\b/g, "*")]
        : undefined;
      return [{ path, message: words ?? error.message }];
    }
  }
}

/** A JSON pointer (RFC 6901) as a dotted path. */
function dottedPath(pointer: string): string {
  const dotted = pointer.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
  return dotted.slice(0, maxPathLength).toWellFormed();
}

/** What is wrong with a body as a whole. */
function invalidBody(message: string, cause?: unknown): DomainError {
  return DomainError.invalid([{ path: "", message }], undefined, cause);
}
