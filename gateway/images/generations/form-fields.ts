import { DomainError, type Issue } from "../../../lib/runtime/domain-error.ts";
import type { JsonObject } from "../../body/json-body.ts";

/** How texts of a form are read where the field is no text; what can't be read so is left to the check. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  n: toNumber,
  output_compression: toNumber,
  partial_images: toNumber,
  seed: toNumber,
  stream: (text) => (/^(true|false)$/i.test(text) ? text.toLowerCase() === "true" : text),
  provider: toJson,
  trace: toJson,
};

/**
 * Those of a form's fields that are known, as the members of a JSON body; an empty text counts as absent. Throws
 * invalid_body for one that is given twice.
 */
export function fromFormFields(
  fields: readonly (readonly [name: string, value: string])[],
  known: object,
): JsonObject {
  const members = new Map<string, unknown>();
  const issues: Issue[] = [];
  for (const [name, text] of fields) {
    if (!Object.hasOwn(known, name)) continue;
    if (members.has(name)) issues.push({ path: name, message: "must be given once" });
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined;
    if (text !== "") members.set(name, read === undefined ? text : read(text));
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
  return Object.fromEntries(members);
}

function toNumber(text: string): unknown {
  return /^-?\d{1,16}$/.test(text) ? Number(text) : text;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
