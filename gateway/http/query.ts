import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { parseUtcInstant } from "../schema/utc-instant.ts";
import type { Exchange } from "./exchange.ts";

/** Above any number that a query has a use for, and within 32 bits. */
export const maxInteger = 1_000_000_000;

/** What the services call the parameters of a page that goes on by cursor. */
export const cursorPageNames = { page_token: "cursor", page_size: "limit" } as const;

/** What `read` makes of a request's query. Throws invalid_body with all faults found. */
export function readQuery<T>(exchange: Pick<Exchange, "query">, read: (query: QueryReader) => T): T {
  const query = new QueryReader(exchange);
  const asked = read(query);
  query.throwIfAny();
  return asked;
}

/** Reads the parameters of a query, each given at most once, and collects what is wrong with them. */
export class QueryReader {
  readonly #query: URLSearchParams;
  readonly #issues: Issue[] = [];

  constructor({ query }: Pick<Exchange, "query">) {
    this.#query = query;
  }

  /** The parameter as it is, undefined when it is not given. */
  text(name: string): string | undefined {
    const values = this.#query.getAll(name);
    if (values.length > 1) this.addIssue(name, "must be given once");
    else if (values[0] === "") this.addIssue(name, "must not be empty");
    return values[0];
  }

  /** A parameter of a form. */
  matching(name: string, pattern: RegExp, message: string): string | undefined {
    const value = this.text(name);
    if (value !== undefined && !pattern.test(value)) this.addIssue(name, message);
    return value;
  }

  /** A key's hash, in lower case. */
  keyHash(name: string): string | undefined {
    const hash = this.text(name)?.toLowerCase();
    if (hash !== undefined && !isKeyHash(hash)) this.addIssue(name, "must be 64 hex characters");
    return hash;
  }

  /** An instant in UTC. */
  instant(name: string): Timestamp | undefined {
    const text = this.text(name);
    const ms = text === undefined ? undefined : parseUtcInstant(text);
    if (text !== undefined && ms === undefined) {
      this.addIssue(name, "must be an instant in UTC such as 2030-01-31T12:00:00Z");
    }
    return ms === undefined ? undefined : timestampFromMs(ms);
  }

  /** One of some words. */
  word<const W extends string>(name: string, words: readonly W[]): W | undefined {
    const text = this.text(name);
    const found = words.find((word) => word === text);
    if (text !== undefined && found === undefined) this.addIssue(name, `must be one of ${words.join(", ")}`);
    return found;
  }

  /** A whole number that is not negative. */
  integer(name: string): number | undefined {
    const text = this.matching(name, /^\d+$/, "must be a whole number");
    const value = Number(text);
    if (text !== undefined && value > maxInteger) this.addIssue(name, "is too large");
    return text === undefined ? undefined : value;
  }

  /** Which part of a list is wanted: `offset`, and `limit` where it is given. */
  page(): { offset: number; limit?: number } {
    const limit = this.integer("limit");
    const offset = this.integer("offset") ?? 0;
    return { offset, ...(limit === undefined ? {} : { limit }) };
  }

  /** Which page of a list is wanted that goes on by cursor, in the services' words. */
  cursorPage(): { pageToken: string; pageSize?: number } {
    const pageToken = this.text("cursor") ?? "";
    const pageSize = this.integer("limit");
    if (pageSize === 0) this.addIssue("limit", "must not be 0");
    return { pageToken, ...(pageSize === undefined ? {} : { pageSize }) };
  }

  /** Whether it is `true`, in any case; false when it is not given. */
  flag(name: string): boolean {
    const value = this.matching(name, /^(true|false)$/i, "must be true or false");
    return value?.toLowerCase() === "true";
  }

  /** Adds a fault of a parameter, unless one was found already. */
  addIssue(path: string, message: string): void {
    if (!this.#issues.some((issue) => issue.path === path)) this.#issues.push({ path, message });
  }

  /** Throws invalid_body with the faults found, if any. */
  throwIfAny(): void {
    if (this.#issues.length > 0) throw DomainError.invalid(this.#issues);
  }
}
