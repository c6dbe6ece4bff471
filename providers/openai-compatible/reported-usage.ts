import type { TokenUsage, UpstreamReport } from "../contract.ts";
import { isRecord } from "../upstream/failure.ts";
import { parseTokenCount } from "../upstream/token-count.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What an object says under `usage`, or `token_usage`; undefined where it says nothing but zeros. */
export function speechUsageOf({ usage, token_usage }: Fields): UpstreamReport | undefined {
  const reported = [usage, token_usage].find(isRecord);
  if (reported === undefined) return undefined;
  return toReport({
    tokens: tokensOf(reported.input_tokens, reported.output_tokens),
    costUsd: costOf(reported.cost),
  });
}

/** What the headers say that an endpoint's settings name; undefined where they say nothing but zeros. */
export function reportedByHeaders(
  headers: Readonly<Record<string, string>>,
  names: Fields,
): UpstreamReport | undefined {
  const numberIn = (name: unknown) => {
    const text = typeof name === "string" ? headers[name.toLowerCase()] : undefined;
    return text === undefined || text.trim() === "" ? undefined : Number(text);
  };
  return toReport({
    tokens: tokensOf(numberIn(names.input_tokens), numberIn(names.output_tokens)),
    characters: numberIn(names.characters),
    costUsd: numberIn(names.cost_usd),
  });
}

/** US dollars as they are reported: undefined where they are left out, NaN where it is no number. */
function costOf(cost: unknown): number | undefined {
  if (cost === undefined || cost === null) return undefined;
  return typeof cost === "number" ? cost : Number.NaN;
}

/** Servers that count nothing report zeros. */
function tokensOf(input: unknown, output: unknown): TokenUsage | undefined {
  const [prompt, completion] = [parseTokenCount(input), parseTokenCount(output)];
  if (prompt === 0 && completion === 0) return undefined;
  return { prompt, completion, audioCompletion: completion };
}

function toReport(report: UpstreamReport): UpstreamReport | undefined {
  const isEmpty = Object.values(report).every((value) => value === undefined);
  return isEmpty ? undefined : report;
}

/** What the `usage` of an answer with images says. */
export function imageUsageOf(usage: unknown): UpstreamReport {
  return isRecord(usage)
    ? { tokens: imageTokensOf(usage), costUsd: costOf(usage.cost) }
    : { tokens: undefined };
}

/**
 * By OpenAI's names or the older ones; servers that count nothing report zeros. Output that is not itemized is the image:
 * these models speak in images.
 */
function imageTokensOf(usage: Fields): TokenUsage | undefined {
  const input = isRecord(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const output = isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {};
  const made = usage.output_tokens ?? usage.completion_tokens;
  const prompt = parseTokenCount(usage.input_tokens ?? usage.prompt_tokens);
  const completion = parseTokenCount(made);
  if (prompt === 0 && completion === 0) return undefined;
  return {
    prompt,
    completion,
    imagePrompt: parseTokenCount(input.image_tokens),
    imageCompletion: parseTokenCount(output.image_tokens ?? made),
    cachedPrompt: parseTokenCount(input.cached_tokens),
  };
}
