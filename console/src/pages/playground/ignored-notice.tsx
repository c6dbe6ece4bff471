import { Notice } from "../../kit/notice.tsx";

/** What an answer's headers say of the parts of a request that had no effect. */
export interface Unheeded {
  readonly parameters: readonly string[];
  readonly words: readonly string[];
}

/** Reads them. */
export function unheededOf({ headers }: Response): Unheeded {
  return {
    parameters: listOf(headers.get("x-ignored-parameters")),
    words: listOf(headers.get("x-unrecognized-prompt-words")),
  };
}

function listOf(header: string | null): readonly string[] {
  return (header ?? "").split(",").flatMap((part) => (part === "" ? [] : [decoded(part)]));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const parameterWords: Readonly<Record<string, string>> = {
  speed: "the speed",
  quality: "the quality",
  aspect_ratio: "the ratio",
  resolution: "the size",
  size: "the size",
  stream: "previews",
  output_compression: "the compression",
};

/** Says in words what of a request had no effect; nothing where all had one. */
export function IgnoredNotice({ unheeded: { parameters, words } }: { unheeded: Unheeded }) {
  if (parameters.length === 0 && words.length === 0) return null;
  return (
    <Notice tone="warn">
      {parameters.length > 0 && (
        <p>
          The model has no control over {listed(parameters.map((name) => parameterWords[name] ?? name))}: what
          was asked for there had no effect.
        </p>
      )}
      {words.length > 0 && (
        <p>Not understood, and left out: {words.map((word) => `“${word}”`).join(", ")}.</p>
      )}
    </Notice>
  );
}

function listed(words: readonly string[]): string {
  return new Intl.ListFormat("en", { type: "disjunction" }).format(new Set(words));
}
