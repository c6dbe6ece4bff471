import { randomBytes } from "node:crypto";
import pg from "pg";

/** Texts that must not be found where they have no business, in whatever encoding they may stand there. */
export class Canaries {
  readonly #forms = new Map<string, ReadonlySet<string>>();

  /** A text of its own to plant under a name: letters, digits and the dashes of a key. */
  plant(name: string, prefix = ""): string {
    const text = `${prefix}canary-${name.replaceAll(/\W/g, "-")}-${randomBytes(12).toString("hex")}`;
    this.watch(name, text);
    return text;
  }

  /** Looks out for a text that was made elsewhere. */
  watch(name: string, text: string): void {
    if (text.length < 12) throw new Error(`${name} is too short to be looked for`);
    this.#forms.set(name, new Set(formsOf(text)));
  }

  /** The names of those that stand in a text, or in bytes as they are. */
  namesIn(content: string | Uint8Array): readonly string[] {
    const text = typeof content === "string" ? content : Buffer.from(content).toString("latin1");
    return [...this.#forms].filter(([, forms]) => hasAny(text, forms)).map(([name]) => name);
  }

  /** Which of them stand in which of many texts, as `name: the beginning of the text`; empty when none does. */
  leaksIn(contents: Iterable<string | Uint8Array>): readonly string[] {
    return [...contents].flatMap((content) =>
      this.namesIn(content).map(
        (name) => `${name}: ${Buffer.from(content).toString("latin1").slice(0, 300)}`,
      ),
    );
  }
}

function hasAny(text: string, forms: ReadonlySet<string>): boolean {
  for (const form of forms) if (text.includes(form)) return true;
  return false;
}

/** As it is, as URLs and JSON write it, as hex, and as base64 at each place within three bytes. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const base64 = [0, 1, 2].map((offset) => {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replaceAll("=", "");
    // Letters at the ends hold bits of what stands beside it.
    return whole.slice(offset === 0 ? 0 : offset + 1, -2);
  });
  const base64url = base64.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"));
  return [
    text,
    encodeURIComponent(text),
    JSON.stringify(text).slice(1, -1),
    bytes.toString("hex"),
    ...base64,
    ...base64url,
  ];
}

/** Every row of every table of a database, as text; bytes as hex. */
export async function allRows(databaseUrl: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const rows: string[] = [];
    for (const { name } of tables) {
      const found = await client.query<{ row: string }>(`SELECT to_json(t)::text AS row FROM ${name} AS t`);
      rows.push(...found.rows.map(({ row }) => `${name} ${row}`));
    }
    return rows;
  } finally {
    await client.end();
  }
}
