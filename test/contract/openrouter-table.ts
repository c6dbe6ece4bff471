import { readFile } from "node:fs/promises";

const page = new URL("../../docs/compatibility.md", import.meta.url);

/** What `docs/compatibility.md` says of a method of OpenRouter's SDKs, or of all that have no row of their own. */
export interface SdkTableRow {
  /** Such as `byok.list` or `chat.*`. */
  readonly method: string;
  readonly works: boolean;
  /** Whether it says that it is answered 404. */
  readonly isRefused: boolean;
}

/** The table of OpenRouter's SDKs. */
export interface SdkTable {
  readonly rows: readonly SdkTableRow[];
  /** The row of a method; undefined when the table forgot it. */
  readonly rowOf: (method: string) => SdkTableRow | undefined;
}

/** Reads the table of `docs/compatibility.md`. */
export async function readSdkTable(): Promise<SdkTable> {
  const text = await readFile(page, "utf8");
  const [, section = ""] = text.split("\n## OpenRouter's SDKs\n");
  const lines = (section.split("\n## ")[0] ?? "").matchAll(/^\| `([\w.*]+)` \| (.+) \|$/gm);
  const rows = [...lines].map(([, method = "", here = ""]) => ({
    method,
    works: here.startsWith("works"),
    isRefused: here.startsWith("404: "),
  }));
  const byMethod = new Map(rows.map((row) => [row.method, row]));
  return {
    rows,
    rowOf: (method) => byMethod.get(method) ?? byMethod.get(`${method.split(".")[0]}.*`),
  };
}
