/** Longest header of ignored parameters, so that no client chokes on an answer's headers. */
const maxLength = 2048;

/** The header that names the parameters which had no effect; none when all had one. */
export function ignoredParametersHeaders(names: readonly string[]): Readonly<Record<string, string>> {
  const header = ignoredParametersHeader(names);
  return header === "" ? {} : { "x-ignored-parameters": header };
}

/** Names of parameters as a header lists them: with commas between, what no header may hold percent-encoded. */
export function ignoredParametersHeader(names: readonly string[]): string {
  let header = "";
  for (const name of names) {
    const next = name.toWellFormed().replace(/[^\w.[\]~-]/gu, encodeURIComponent);
    if (header.length + next.length >= maxLength) break;
    header += header === "" ? next : `,${next}`;
  }
  return header;
}
