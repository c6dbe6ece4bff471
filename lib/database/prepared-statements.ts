import { type RawBuilder, sql } from "kysely";
import type pg from "pg";

/** What a statement begins with that is prepared, with its name. */
const mark = /^\/\* prepared: ([a-z_]{1,63}) \*\//;

/**
 * Begins a statement that each connection prepares once, under this name, which no other statement has: for what every
 * request runs. Its plan is made for whatever values come, so it belongs before calls of functions and what is found by key.
 */
export function prepared(name: string): RawBuilder<unknown> {
  return sql.raw(`/* prepared: ${name} */`);
}

/** Has a connection prepare the statements that are marked. Only calls with text and values know of it. */
export function prepareMarked(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  const marked = (text: unknown, values: unknown, ...rest: unknown[]) => {
    const name = typeof text === "string" ? mark.exec(text)?.[1] : undefined;
    return name === undefined ? query(text, values, ...rest) : query({ name, text, values }, ...rest);
  };
  client.query = marked as typeof client.query;
}
