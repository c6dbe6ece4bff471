import { headerList } from "./header-list.ts";

/** The header that names the parameters which had no effect; none when all had one. */
export function ignoredParametersHeaders(names: readonly string[]): Readonly<Record<string, string>> {
  const header = headerList(names);
  return header === "" ? {} : { "x-ignored-parameters": header };
}
