import { silentLog } from "../../lib/runtime/log.ts";
import type { Medium, Model } from "../../providers/catalog/catalog.ts";
import {
  type AttemptContext,
  type Provider,
  ProviderError,
  type TokenUsage,
  type UpstreamReport,
} from "../../providers/contract.ts";
import { createProviders, type ProviderSet } from "../../providers/registry.ts";
import { noResultFetches } from "./no-results.ts";

/**
 * Gives an output, throws, falls silent until it is aborted, or waits for a promise, taking no notice of the abort, and
 * gives what it resolves with, if anything.
 */
export type Step<Output> = Output | Error | "silence" | Promise<Output | undefined> | Promise<void>;

/** What an adapter does with each call. */
export interface Script<Output> {
  /** Before it accepts the call. */
  readonly before?: readonly Step<Output>[];
  /** The tokens that it reports once its output has ended. */
  readonly usage?: TokenUsage;
  /** What else it reports then. */
  readonly report?: Omit<UpstreamReport, "tokens">;
  /** Whether its request is sent whole, which it tells as it begins; true unless given. */
  readonly sent?: boolean;
}

/** One call as an adapter saw it. */
export interface SeenCall<Call> extends AttemptContext {
  readonly call: Call;
  /** How many outputs were asked for and given. */
  pulled: number;
  /** Whether its output has ended, in whatever way. */
  ended: boolean;
}

/** Takes a call up to where it is accepted, and keeps it. */
export async function accept<Call>(
  seen: SeenCall<Call>[],
  { before = [], sent = true }: Script<unknown>,
  call: Call,
  context: AttemptContext,
): Promise<SeenCall<Call>> {
  const taken = { ...context, call, pulled: 0, ended: false };
  seen.push(taken);
  if (sent) context.onSent();
  for (const step of before) await perform(step, context.signal);
  return taken;
}

/** What a call's adapter reports; undefined until its output has ended. */
export function reportOf(
  { usage, report }: Script<unknown>,
  { ended }: SeenCall<unknown>,
): UpstreamReport | undefined {
  return ended ? { ...report, tokens: usage } : undefined;
}

/** Goes through the steps of a call. */
export async function* outputsOf<Output>(
  steps: readonly Step<Output>[],
  seen: SeenCall<unknown>,
): AsyncGenerator<Output> {
  try {
    for (const step of steps) {
      const output = await perform(step, seen.signal);
      if (output === undefined) continue;
      seen.pulled += 1;
      yield output;
    }
  } finally {
    seen.ended = true;
  }
}

async function perform<Output>(step: Step<Output>, signal: AbortSignal): Promise<Output | undefined> {
  if (step instanceof Promise) return (await step) ?? undefined;
  if (step instanceof Error) throw step;
  if (step === "silence") await aborted(signal);
  if (signal.aborted) throw new ProviderError("network", "the request was ended from this side");
  return step === "silence" ? undefined : step;
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve, { once: true });
  });
}

/** Providers by slug that are all on and have these adapters; those without one are off. */
export function providersOf<M extends Medium>(
  medium: M,
  adapters: Readonly<Record<string, Provider[M] | undefined>>,
): ProviderSet {
  const manifests = Object.entries(adapters).map(([slug, adapter]) => ({
    slug,
    defaultBaseUrl: `http://${slug}.test`,
    needsKey: adapter === undefined,
    create: async () => (adapter === undefined ? {} : { [medium]: adapter }),
  }));
  const http = { request: () => Promise.reject(new Error("a fake makes no requests")) };
  return createProviders({ environment: {}, http, results: noResultFetches, log: silentLog, manifests });
}

/** The models that endpoints name. */
export function modelsOf(
  medium: Medium,
  endpoints: readonly { readonly model: string; readonly permaslug: string }[],
): Model[] {
  const models = new Map(endpoints.map(({ model, permaslug }) => [model, permaslug]));
  return [...models].map(([id, permaslug]) => ({
    id,
    permaslug,
    name: id.toUpperCase(),
    description: `${medium === "speech" ? "Speaks" : "Draws"} as ${id}.`,
    createdUnixS: 1_900_000_000,
    medium,
  }));
}
