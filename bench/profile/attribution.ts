import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { CallFrame, Cost } from "./inspector.ts";

/** What costs of one name come to. */
export interface Sum {
  readonly name: string;
  readonly self: number;
}

/** Where a function is written. */
interface Place {
  /** `file://…`, `node:…`, or empty. */
  readonly url: string;
  /** From 1. */
  readonly line: number;
}

/** Rooms of ours that have rooms of their own. */
const nested: ReadonlySet<string> = new Set(["lib", "packages", "providers", "services"]);
const waiting = "(idle)";

/** Finds who owns a function: a package, a room of ours, Node, or the collection of garbage. */
export class Attribution {
  readonly #root: string;
  readonly #maps = new Map<string, SourceMap | undefined>();
  readonly #read: (url: string) => string | undefined;

  /** Paths are told from `root`; `readMap` finds the source map of a script by its URL. */
  constructor(root: string, readMap: (url: string) => string | undefined = readMapOf) {
    this.#root = root;
    this.#read = readMap;
  }

  /** Costs by owner, the largest first; what was not spent on anything is left out. */
  byOwner(costs: readonly Cost[]): readonly Sum[] {
    return sumBy(costs, (frame) => this.#ownerOf(frame));
  }

  /** Costs by function, the largest first. */
  byFunction(costs: readonly Cost[]): readonly Sum[] {
    return sumBy(costs, (frame) => {
      const { url, line } = this.#placeOf(frame);
      const name = frame.functionName || "(anonymous)";
      return url === "" ? name : `${name}  ${this.#shorten(url)}:${line}`;
    });
  }

  #ownerOf(frame: CallFrame): string {
    const { functionName } = frame;
    if (functionName === "(garbage collector)") return "garbage collection";
    if (functionName === "(program)") return "native code outside of scripts";
    const { url } = this.#placeOf(frame);
    if (url === "") return "native code called by scripts";
    if (url.startsWith("node:")) return "node internals";
    if (url.startsWith("wasm:")) return "wasm";
    return ownerOfPath(this.#shorten(url));
  }

  #shorten(url: string): string {
    if (!url.startsWith("file:")) return url;
    return relative(this.#root, fileURLToPath(url));
  }

  #placeOf({ url: scriptUrl, lineNumber, columnNumber }: CallFrame): Place {
    // Modules of CommonJS have paths.
    const url = scriptUrl.startsWith("/") ? pathToFileURL(scriptUrl).href : scriptUrl;
    const here = { url, line: lineNumber + 1 };
    if (!url.startsWith("file:") || url.endsWith(".ts") || url.includes("/node_modules/")) return here;
    const entry = this.#mapOf(url)?.findEntry(lineNumber, columnNumber);
    if (entry === undefined || !("originalSource" in entry)) return here;
    return { url: new URL(entry.originalSource, url).href, line: entry.originalLine + 1 };
  }

  #mapOf(url: string): SourceMap | undefined {
    if (!this.#maps.has(url)) {
      const text = this.#read(url);
      this.#maps.set(url, text === undefined ? undefined : new SourceMap(JSON.parse(text)));
    }
    return this.#maps.get(url);
  }
}

function ownerOfPath(path: string): string {
  const inPackage = path.lastIndexOf("node_modules/");
  if (inPackage >= 0) {
    const parts = path.slice(inPackage + "node_modules/".length).split("/");
    return parts.slice(0, parts[0]?.startsWith("@") ? 2 : 1).join("/");
  }
  const [top = "", ...rest] = path.split("/");
  const room = rest.length > 1 && nested.has(top) ? `${top}/${rest[0]}` : top;
  return `our ${room}`;
}

function sumBy(costs: readonly Cost[], nameOf: (frame: CallFrame) => string): readonly Sum[] {
  const sums = new Map<string, number>();
  for (const { frame, self } of costs) {
    if (self === 0 || frame.functionName === waiting || frame.functionName === "(root)") continue;
    const name = nameOf(frame);
    sums.set(name, (sums.get(name) ?? 0) + self);
  }
  return [...sums].map(([name, self]) => ({ name, self })).sort((a, b) => b.self - a.self);
}

function readMapOf(url: string): string | undefined {
  const path = `${fileURLToPath(url)}.map`;
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
