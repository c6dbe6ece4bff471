/** What clients ask for in a crash test: mixed requests, each with a tag that the upstream and the record name too. */
import type { OpenAiUpstreamOptions } from "../upstreams/openai/openai.ts";
import { fallbackModel, type Side } from "./crash-stack.ts";

/** When a client leaves: soon after it has asked, or once its answer has begun. */
export type Leaving = "early" | "midway";

/** One request of a client. */
export interface CrashRequest {
  /** Stands in `session_id` and in the text. */
  readonly tag: string;
  readonly side: Side;
  readonly api: "speech" | "image";
  /** Which of the accounts asks. */
  readonly account: number;
  readonly path: "/audio/speech" | "/images";
  readonly body: Readonly<Record<string, unknown>>;
  readonly leaves: Leaving | undefined;
  /** What a whole answer costs, nano-USD, where that is known beforehand. */
  readonly costNanoUsd: bigint | undefined;
}

/** What a kind of request has besides its tag: a marker for the stand-in, fields of its body. */
interface Kind {
  readonly api: CrashRequest["api"];
  readonly marker?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly leaves?: Leaving;
  /** How many of a hundred requests. */
  readonly share: number;
}

const speechKinds: readonly Kind[] = [
  { api: "speech", share: 67, marker: "audio=8192" },
  { api: "speech", share: 6, marker: "audio=16384 chunk=1024 interval=80" },
  { api: "speech", share: 2, marker: "audio=8192", leaves: "early" },
  { api: "speech", share: 2, marker: "audio=65536 chunk=1024 interval=40", leaves: "midway" },
  { api: "speech", share: 3, marker: "audio=8192", fields: { model: fallbackModel } },
  { api: "speech", share: 1, marker: "status=500" },
  { api: "speech", share: 1, marker: "status=429 retry-after=1" },
  { api: "speech", share: 1, marker: "audio=16384 chunk=1024 interval=20 cut=8192" },
  { api: "speech", share: 1, marker: "cut=0" },
  { api: "speech", share: 1, marker: "stall=2048" },
];
const imageKinds: readonly Kind[] = [
  { api: "image", share: 7 },
  { api: "image", share: 1, fields: { n: 2 } },
  { api: "image", share: 1, marker: "interval=50", fields: { stream: true } },
  { api: "image", share: 2, marker: "delay=600" },
  { api: "image", share: 1, marker: "delay=600", leaves: "early" },
  { api: "image", share: 1, marker: "status=500" },
  { api: "image", share: 1, marker: "status=400 code=moderation_blocked" },
  { api: "image", share: 1, marker: "cut=1000" },
];
/** A hundred requests, in an order in which kinds are spread. */
const hundred = spread([...speechKinds, ...imageKinds].flatMap((kind) => Array<Kind>(kind.share).fill(kind)));

function spread(kinds: readonly Kind[]): readonly Kind[] {
  return kinds.map((_, index) => kinds[(index * 37) % kinds.length] as Kind);
}

const speechModel = "openai/tts-1";
/** List price of `speechModel`, nano-USD a character. */
const characterPrice = 15_000n;
const tagPattern = /\bTag ([\w-]+)\./;

/** Request number `index` of a load. */
export function crashRequest(
  load: string,
  index: number,
  sides: readonly Side[],
  accounts: number,
): CrashRequest {
  // Each hundred is shifted against the one before, so that kinds change sides and accounts.
  const kind = hundred[(index + Math.floor(index / 100)) % hundred.length] as Kind;
  const { api, marker, fields, leaves } = kind;
  const tag = `${load}-${String(index).padStart(4, "0")}`;
  const text = `Tag ${tag}.${marker === undefined ? "" : ` [[${marker}]]`}`;
  const isSpeech = api === "speech";
  return {
    tag,
    api,
    leaves,
    side: sides[index % sides.length] as Side,
    account: Math.floor(index / sides.length) % accounts,
    path: isSpeech ? "/audio/speech" : "/images",
    body: { ...(isSpeech ? speechBody(text, index) : imageBody(text)), session_id: tag, ...fields },
    costNanoUsd: isSpeech && fields === undefined ? BigInt(text.length) * characterPrice : undefined,
  };
}

function speechBody(input: string, index: number) {
  return { model: speechModel, voice: "alloy", response_format: index % 3 === 0 ? "mp3" : "pcm", input };
}

function imageBody(prompt: string) {
  return { model: "openai/gpt-image-1.5", prompt, quality: "low" };
}

/** How many there are whose clients stay and whose upstream gives all: what a load is whole answers of, if nothing dies. */
export const wholeShare = hundred.filter(
  ({ marker = "", leaves }) => leaves === undefined && !/status|cut|stall/.test(marker),
).length;

/** The upstream of these requests: of the model that fails over every other answer of the first endpoint is an error. */
export function crashUpstream(): OpenAiUpstreamOptions {
  let answers = 0;
  return {
    behave({ model }) {
      if (model !== "tts-1-hd") return undefined;
      answers += 1;
      return answers % 2 === 1 ? { kind: "error", status: 500 } : undefined;
    },
  };
}

/** The tag in a request's body, as the upstream got it. */
export function tagOf(text: string): string | undefined {
  return tagPattern.exec(text)?.[1];
}
