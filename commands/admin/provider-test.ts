import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import {
  type ProviderTestReport,
  ProviderTestVerdict as Verdict,
} from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import type { Audience } from "../../lib/identity/issuer.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { httpUrlVar, readConfig } from "../../lib/runtime/config.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { type AdminOptions, type AdminOutput, countOf, usd } from "./action.ts";
import { adminSpec, operatorToken, refused } from "./client.ts";

/** Longer than any test takes, milliseconds. */
const timeoutMs = 150_000;
/** More keys than anybody has of a provider. */
const maxKeys = 1000;

/**
 * Has the service that holds the key try a provider: by speech where it speaks and no medium is named, else by an image.
 * Throws StartError.
 */
export async function testProvider({
  provider: providerSlug,
  medium = "",
  key,
  voice = "",
  operator,
}: AdminOptions): Promise<AdminOutput> {
  if (providerSlug === undefined) throw new StartError("name a provider: provider test <slug>");
  if (!["", "speech", "image"].includes(medium)) throw new StartError("--medium takes speech or image");
  const operatorKey = key === undefined ? {} : { operatorKey: countOf("key", key, maxKeys) };
  const asked = { providerSlug, ...operatorKey };
  if (medium !== "image") {
    const speech = createRpcClient(SpeechAdminService, await transportTo("speech", operator));
    const { report } = await speech
      .testSpeechProvider({ ...asked, voice }, { timeoutMs })
      .catch(refused("speech service"));
    if (medium === "speech" || report?.verdict !== Verdict.NOT_OFFERED) return outputOf(providerSlug, report);
  }
  const image = createRpcClient(ImageAdminService, await transportTo("image", operator));
  const { report } = await image.testImageProvider(asked, { timeoutMs }).catch(refused("image service"));
  return outputOf(providerSlug, report);
}

async function transportTo(audience: Audience, operator: string | undefined): Promise<Transport> {
  const url = { default: undefined };
  const config = readConfig({ ...adminSpec, SPEECH_URL: httpUrlVar(url), IMAGE_URL: httpUrlVar(url) });
  const named = audience === "speech" ? config.SPEECH_URL : config.IMAGE_URL;
  const interceptors = [await operatorToken(audience, operator, config)];
  return createRemoteTransport({ baseUrl: named ?? `http://localhost:${config.RPC_PORT}`, interceptors });
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
    `the cheapest call of ${slug} may cost ${usd(mostCostNanoUsd)}, more than a test may`,
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

function outputOf(slug: string, report: ProviderTestReport | undefined): AdminOutput {
  if (report === undefined) throw new StartError("the service says nothing of it");
  const { verdict, providerStatus, firstOutput, total, model, endpointId, mostCostNanoUsd } = report;
  const says = (words[verdict] ?? words[Verdict.UNSPECIFIED])(slug, report);
  const status = providerStatus === 0 ? "" : ` (its status ${providerStatus})`;
  if (endpointId === "") throw new StartError(says);
  const facts = [
    `${model} at endpoint ${endpointId}`,
    firstOutput === undefined ? "no output" : `first output after ${milliseconds(firstOutput)}`,
    `ended after ${milliseconds(total)}`,
    `at most ${usd(mostCostNanoUsd)} there`,
  ].join(", ");
  if (verdict === Verdict.OK || verdict === Verdict.SLOW) return { result: [says], notes: [facts] };
  throw new StartError(`${says}${status}; ${facts}`);
}

function milliseconds(duration: Duration | undefined): string {
  return duration === undefined ? "no time" : `${durationMs(duration)} ms`;
}
