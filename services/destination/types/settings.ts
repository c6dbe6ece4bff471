import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parseFetchUrl } from "../../../lib/http/url-guard.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";

interface TextRule {
  readonly maxLength: number;
  /** What all of it must match; printable characters of ASCII unless given. */
  readonly pattern?: RegExp;
  /** What to say when it does not. */
  readonly expected?: string;
}

/** What reading settings gives. */
export type SettingsResult<C> = { readonly config: C } | { readonly issues: readonly Issue[] };

/**
 * Reads the settings of a destination one by one and keeps what is wrong with them. Null and the empty text count as
 * absent, and names that no one asks for are ignored. A setting that is wrong reads as an empty text.
 */
export class SettingsReader {
  readonly #config: JsonObject;
  readonly #issues: Issue[] = [];

  constructor(config: JsonObject) {
    this.#config = config;
  }

  /** A text that may be left out. */
  optionalText(name: string, rule: TextRule): string | undefined {
    const value = this.#valueOf(name);
    if (value === undefined) return undefined;
    const { maxLength, pattern = printable, expected = "must be printable ASCII without spaces" } = rule;
    if (typeof value !== "string") return this.#refuse(name, "must be a string");
    if (value.length > maxLength) return this.#refuse(name, `must have at most ${maxLength} characters`);
    return pattern.test(value) ? value : this.#refuse(name, expected);
  }

  /** A text; `fallback` when it is left out, else it is required. */
  text(name: string, rule: TextRule, fallback?: string): string {
    return this.optionalText(name, rule) ?? fallback ?? this.#refuse(name, "is required");
  }

  /** An http or https URL without credentials; `fallback` when it is left out, else it is required. */
  url(name: string, fallback?: string): string {
    const text = this.text(name, { maxLength: 2048, pattern: /^[^\s]+$/, expected: notAUrl }, fallback);
    return text === "" || parseFetchUrl(text) !== undefined ? text : this.#refuse(name, notAUrl);
  }

  /** One of a few words; the first when it is left out. */
  oneOf<W extends string>(name: string, words: readonly [W, ...W[]]): W {
    const value = this.#valueOf(name);
    const word = words.find((candidate) => candidate === value);
    if (value !== undefined && word === undefined) this.#refuse(name, `must be one of ${words.join(", ")}`);
    return word ?? words[0];
  }

  /**
   * Headers that its owner adds to every request, names in lower case. `taken` are those that the type sets itself;
   * one that ends in `*` stands for all that begin so.
   */
  headers(taken: readonly string[] = []): Readonly<Record<string, string>> {
    const given = this.#valueOf("headers") ?? {};
    if (!isObject(given)) {
      this.#refuse("headers", "must be an object of strings");
      return {};
    }
    const entries = Object.entries(given);
    if (entries.length > maxHeaders) this.#refuse("headers", `must have at most ${maxHeaders} entries`);
    const headers = new Map<string, string>();
    for (const [name, value] of entries.slice(0, maxHeaders)) {
      const lower = name.toLowerCase();
      const fault = headers.has(lower) ? "is there twice" : faultOfHeader(lower, value, taken);
      if (fault === undefined) headers.set(lower, value as string);
      else this.#refuse(`headers.${name.slice(0, maxHeaderName)}`, fault);
    }
    return Object.fromEntries(headers);
  }

  /** Notes that a setting is wrong, for what can be seen only by looking at it as a whole. */
  refuse(name: string, message: string): void {
    this.#refuse(name, message);
  }

  /** The settings, unless something was wrong. */
  done<C>(config: C): SettingsResult<C> {
    return this.#issues.length === 0 ? { config } : { issues: this.#issues };
  }

  #valueOf(name: string): JsonValue | undefined {
    const value = Object.hasOwn(this.#config, name) ? this.#config[name] : undefined;
    return value === null || value === "" ? undefined : value;
  }

  #refuse(name: string, message: string): "" {
    this.#issues.push({ path: `config.${name}`, message });
    return "";
  }
}

const printable = /^[\x21-\x7e]+$/;
const notAUrl = "must be an http or https URL without user name and password";

const maxHeaders = 20;
const maxHeaderName = 128;
const maxHeaderValue = 4096;
const headerName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const headerValue = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;

/** Headers that decide the connection, the framing or the format of a request. */
const reservedHeaders = [
  "accept-encoding connection content-* expect host keep-alive proxy-* te trailer transfer-encoding upgrade",
  "x-delivery-id x-test-connection",
].flatMap((names) => names.split(" "));

function faultOfHeader(name: string, value: JsonValue, taken: readonly string[]): string | undefined {
  if (name.length > maxHeaderName || !headerName.test(name)) return "is no name of a header";
  const isSet = [...reservedHeaders, ...taken].some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
  if (isSet) return "is a header that is set already";
  if (typeof value !== "string" || value.length > maxHeaderValue || !headerValue.test(value)) {
    return `must be printable ASCII of 1 to ${maxHeaderValue} characters`;
  }
  return undefined;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
