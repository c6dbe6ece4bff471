/** Longest list, so that no client chokes on an answer's headers. */
const maxLength = 2048;

/** Any texts as a header lists them: with commas between, what no header may hold percent-encoded, as many as fit. */
export function headerList(texts: readonly string[]): string {
  let list = "";
  for (const text of texts) {
    const next = text.toWellFormed().replace(/[^\w.[\]~-]/gu, encodeURIComponent);
    if (list.length + next.length >= maxLength) break;
    list += list === "" ? next : `,${next}`;
  }
  return list;
}

/** The header that names the parameters which had no effect; none when all had one. */
export function ignoredParametersHeaders(names: readonly string[]): Readonly<Record<string, string>> {
  const header = headerList(names);
  return header === "" ? {} : { "x-ignored-parameters": header };
}
