import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

const levelStyles: Readonly<Record<string, Style>> = {
  warn: "yellow",
  error: "red",
  fatal: ["bold", "red"],
};

/** A line of the log for people at a terminal: time, level, message and fields, and below them where an error is from. */
export function readableLine(line: string, hasColors: boolean): string {
  const { level, time, process, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const styled = (style: Style, text: string) =>
    hasColors ? styleText(style, text, { validateStream: false }) : text;
  const levelText = String(level).padEnd(5);
  const levelStyle = levelStyles[String(level)];
  const told = Object.entries(fields).map(([name, value]) => `${name}=${shownValue(value)}`);
  const words = [
    styled("dim", timeOfDay(String(time))),
    levelStyle === undefined ? levelText : styled(levelStyle, levelText),
    printable(String(msg ?? "")),
    ...(told.length === 0 ? [] : [styled("dim", told.join(" "))]),
  ];
  return `${[words.join(" "), ...shownError(err).map((text) => styled("dim", text))].join("\n")}\n`;
}

function timeOfDay(time: string): string {
  return new Date(time).toLocaleTimeString("en-GB");
}

function shownValue(value: unknown): string {
  return printable(typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value));
}

function shownError(err: unknown): string[] {
  if (err === undefined) return [];
  const { stack } = (err ?? {}) as { stack?: unknown };
  if (typeof stack !== "string") return [`  ${shownValue(err)}`];
  return stack.split("\n").map((text) => `  ${printable(text)}`);
}

/** What others wrote must not steer the terminal, nor look like another line. */
function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`,
  );
}
