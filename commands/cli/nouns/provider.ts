import { type Duration, durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { ImageAdminService } from "../../../gen/media/image/v1/image_admin_service_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import type { ProviderState } from "../../../gen/media/routing/v1/provider_state_pb.ts";
import {
  type ProviderTestReport,
  ProviderTestVerdict as Verdict,
} from "../../../gen/media/routing/v1/provider_test_report_pb.ts";
import { SpeechAdminService } from "../../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import type { Input, Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { CommandFailure } from "../failure.ts";
import { dollars, type Fields, type Output, usd } from "../output.ts";
import { media, mediumOption } from "./model.ts";

/** Longer than any test takes, milliseconds. */
const testTimeoutMs = 150_000;
/** More keys than anybody has of a provider. */
const maxKeys = 1000;

const columns = [
  "provider",
  "name",
  "medium",
  "state",
  "models",
  "attempts",
  "failed",
  "last_failure",
  "switch",
];

/** Who serves. */
export const provider: Noun = {
  name: "provider",
  alias: "providers",
  summary: "who serves requests",
  verbs: [
    {
      name: "list",
      summary: "providers, on or off, and how they have fared in the last half hour",
      options: [mediumOption],
      details: "What is said of attempts and failures is what the process that answers has seen itself.",
      run: listProviders,
    },
    {
      name: "test",
      summary: "make one live call with the operator's key, the cheapest that the provider has",
      positionals: ["provider"],
      options: [
        { name: "medium", value: "medium", help: "speech or image; what the provider has unless given" },
        { name: "key", value: "n", help: "which of several keys; the first unless given" },
        { name: "voice", value: "voice", help: "the voice to speak with" },
      ],
      details:
        "It charges no account and leaves no usage record; its vendor bills it. It stands in the audit.",
      run: testProvider,
    },
  ],
};

async function listProviders(input: Input, cli: Cli): Promise<Output> {
  const asked = input.word("medium", media);
  const rows: Fields[] = [];
  if (asked !== "image") {
    const { providers } = await (await cli.client(SpeechService, "speech")).listSpeechProviders({});
    rows.push(...providers.map((state) => stateFields(state, "speech")));
  }
  if (asked !== "speech") {
    const { providers } = await (await cli.client(ImageService, "image")).listImageProviders({});
    rows.push(...providers.map((state) => stateFields(state, "image")));
  }
  return { columns, rows };
}

function stateFields(state: ProviderState, medium: string): Fields {
  const { slug, name, on, models, ended, failed, openBreakers, endpoints, lastFailure } = state;
  const resting = openBreakers === 0 ? "" : `, ${openBreakers} of ${endpoints} endpoints left alone`;
  const at = lastFailure?.at && timestampDate(lastFailure.at).toISOString();
  return {
    provider: slug,
    name,
    medium,
    state: on ? `on${resting}` : "off",
    models,
    attempts: ended,
    failed,
    last_failure: lastFailure && `${lastFailure.kind} at ${at}`,
    switch: state.switchVariable || undefined,
  };
}

/**
 * Has the service that holds the key try a provider: by speech where it speaks and no medium is named, else by an image.
 */
async function testProvider(input: Input, cli: Cli): Promise<Output> {
  const slug = input.required("provider");
  const medium = input.word("medium", media);
  const operatorKey = input.count("key", maxKeys);
  const asked = { providerSlug: slug, ...(operatorKey === undefined ? {} : { operatorKey }) };
  if (medium !== "image") {
    const speech = await cli.client(SpeechAdminService, "speech", testTimeoutMs);
    const { report } = await speech.testSpeechProvider({ ...asked, voice: input.text("voice") ?? "" });
    if (medium === "speech" || report?.verdict !== Verdict.NOT_OFFERED) return outputOf(slug, report);
  }
  const image = await cli.client(ImageAdminService, "image", testTimeoutMs);
  return outputOf(slug, (await image.testImageProvider(asked)).report);
}

/** What there is to say of each verdict, of a provider of that slug. */
const words: Readonly<Record<Verdict, (slug: string, report: ProviderTestReport) => string>> = {
  [Verdict.UNSPECIFIED]: () => "the service says nothing of it",
  [Verdict.OK]: (slug) => `${slug} answers`,
  [Verdict.SLOW]: (slug) => `${slug} answers, but slowly`,
  [Verdict.NOT_OFFERED]: (slug) => `no provider ${slug} offers such a model that has a price`,
  [Verdict.OFF]: (slug, { operatorKeys }) =>
    operatorKeys === 0
      ? `${slug} is off: it has no key of the operator's`
      : `${slug} has ${operatorKeys} ${operatorKeys === 1 ? "key" : "keys"}`,
  [Verdict.TOO_DEAR]: (slug, { mostCostNanoUsd }) =>
    `the cheapest call of ${slug} may cost ${dollars(mostCostNanoUsd)}, more than a test may`,
  [Verdict.VOICE_NEEDED]: (slug) => `${slug} needs a voice: name one with --voice`,
  [Verdict.KEY_REFUSED]: (slug) => `${slug} refuses the key`,
  [Verdict.NO_CREDIT]: (slug) => `the key's account at ${slug} has no credit, or no plan for this call`,
  [Verdict.UNKNOWN_MODEL]: (slug, { upstreamModel }) =>
    `${slug} does not know the model ${upstreamModel}, or its address lacks a part of its path`,
  [Verdict.REFUSED]: (slug) => `${slug} refuses the request as wrong`,
  [Verdict.MODERATED]: (slug) => `${slug} refuses the content`,
  [Verdict.OVERLOADED]: (slug) => `${slug} limits the rate or sheds load`,
  [Verdict.UNREACHABLE]: (slug) => `nobody answers at the address of ${slug}`,
  [Verdict.BROKE_OFF]: (slug) => `the connection to ${slug} broke`,
  [Verdict.TIMED_OUT]: (slug) => `${slug} is too slow: no whole answer came in time`,
  [Verdict.FAILED]: (slug) => `${slug} failed by itself`,
  [Verdict.BAD_ANSWER]: (slug) => `what ${slug} answers makes no sense`,
};

const isNotThere: ReadonlySet<Verdict> = new Set([Verdict.NOT_OFFERED]);

function outputOf(slug: string, report: ProviderTestReport | undefined): Output {
  if (report === undefined) throw new CommandFailure("internal", "the service says nothing of it");
  const { verdict, providerStatus, firstOutput, total, model, endpointId, mostCostNanoUsd } = report;
  const says = (words[verdict] ?? words[Verdict.UNSPECIFIED])(slug, report);
  if (endpointId === "") throw new CommandFailure(isNotThere.has(verdict) ? "notFound" : "refused", says);
  return {
    fields: {
      result: says + (providerStatus === 0 ? "" : ` (its status ${providerStatus})`),
      model,
      endpoint: endpointId,
      first_output_ms: millisecondsOf(firstOutput),
      ended_after_ms: millisecondsOf(total),
      at_most_usd: usd(mostCostNanoUsd),
    },
    isWrong: verdict !== Verdict.OK && verdict !== Verdict.SLOW,
  };
}

function millisecondsOf(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}
