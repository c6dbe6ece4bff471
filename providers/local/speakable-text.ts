/** Characters that the engine would drop or misread, in characters that it reads. */
const replacements: Readonly<Record<string, string>> = {
  "‘": "'",
  "’": "'",
  "‛": "'",
  "′": "'",
  "“": '"',
  "”": '"',
  "„": '"',
  "«": '"',
  "»": '"',
  "‐": "-",
  "‑": "-",
  "‒": "-",
  "–": "-",
  "−": "-",
  "—": " -- ",
  "―": " -- ",
  "⁄": "/",
  "×": " times ",
  "÷": " divided by ",
  "°": " degrees ",
  Æ: "AE",
  æ: "ae",
  Œ: "OE",
  œ: "oe",
  Ø: "O",
  ø: "o",
  ẞ: "SS",
  ß: "ss",
  Ł: "L",
  ł: "l",
  Đ: "D",
  đ: "d",
  Ð: "D",
  ð: "d",
  Þ: "Th",
  þ: "th",
  ı: "i",
};

/** One and many of each currency that the engine does not read by itself, as it does $. */
const currencies: Readonly<Record<string, readonly [one: string, many: string]>> = {
  "€": ["euro", "euros"],
  "£": ["pound", "pounds"],
  "¥": ["yen", "yen"],
  "₹": ["rupee", "rupees"],
  "₩": ["won", "won"],
  "¢": ["cent", "cents"],
};
const currencySign = `[${Object.keys(currencies).join("")}]`;
const amount = "(?<amount>\\d(?:[\\d.,]{0,30}\\d)?(?:\\s(?:thousand|million|billion|trillion)\\b)?)";
const signBeforeAmount = new RegExp(`(?<sign>${currencySign})\\s?${amount}`, "giu");
const signAfterAmount = new RegExp(`${amount}\\s?(?<sign>${currencySign})`, "giu");
const signAlone = new RegExp(`(?<sign>${currencySign})`, "gu");

/** Letters, digits and the signs that the engine reads out as words. */
const spoken = /[A-Za-z0-9$%&@#+=*~^|\\/_]/u;

/** Whether the engine says anything at all for this text (of speakableText). */
export function isSpoken(text: string): boolean {
  return spoken.test(text);
}

/**
 * The text in printable ASCII, as the engine is to read it: accents taken off, typographic signs and currencies put into
 * plain words, line ends into punctuation, everything else (other scripts, emoji, control characters) dropped. Empty
 * when nothing of it can be spoken.
 */
export function speakableText(input: string): string {
  const text = namedCurrencies(input.replace(/(?<=\d)(?=[¼-¾⅐-⅞])/gu, " ").normalize("NFKD"))
    .replace(/\p{M}/gu, "")
    .replace(/\r\n?|[\u2028\u2029]/gu, "\n")
    .replace(/[^\n\x20-\x7E]/gu, (character) => replacements[character] ?? " ")
    .replace(/[^\S\n]+/gu, " ")
    .replace(/ ?\n ?/gu, "\n")
    .replace(/(?<=[^\s.,;:!?])\n\n+/gu, ". ")
    .replace(/(?<=[^\s.,;:!?])\n/gu, ", ")
    .replace(/\s+/gu, " ")
    .replace(/ (?=[,;:!?]|\.(?!\d))/gu, "")
    .trim();
  return isSpoken(text) ? text : "";
}

function namedCurrencies(text: string): string {
  const named = (...match: unknown[]) => {
    const { sign, amount: number } = match.at(-1) as { sign: string; amount?: string };
    const [one, many] = currencies[sign] ?? ["", ""];
    return number === undefined ? ` ${one} ` : ` ${number} ${number === "1" ? one : many} `;
  };
  return text.replace(signBeforeAmount, named).replace(signAfterAmount, named).replace(signAlone, named);
}
