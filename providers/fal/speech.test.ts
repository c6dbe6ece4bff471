import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import {
  type FalUpstream,
  falAudio,
  type JobBehaviour,
  startFalUpstream,
  wavOf,
} from "../../test/upstreams/fal.ts";
import { attempt, untilIdle } from "../adapter.suite.ts";
import { ProviderError, type ProviderErrorKind, type SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "../provider.suite.ts";
import { createResultFetches } from "../upstream/network/fetch-result.ts";
import { createSpeechAdapter } from "./speech.ts";

const apiKey = "the-id:the-right-secret";
const call: SpeechCall = {
  upstreamModel: "fal-ai/orpheus-tts",
  input: "A sentence nobody else may read.",
  voice: "tara",
  format: "wav",
  sampleRateHz: 16_000,
  channels: 2,
  speed: 1,
  options: {},
  settings: {},
};

interface Setup extends SpeechProviderSetup {
  readonly upstream: FalUpstream;
}

/** Nothing runs at the vendor while audio is handed out: it comes whole, so that the suite can't look at what runs. */
async function createSetup() {
  const upstream = await startFalUpstream(apiKey);
  const http = createOutboundHttp();
  const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
  const pace = { firstMs: 1, mostMs: 5 };
  return {
    upstream,
    adapter: createSpeechAdapter({ http, fetchResult: results.of(upstream.baseUrl), pace }),
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    close: async () => void (await Promise.all([upstream.close(), http.close(), results.close()])),
  };
}

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: JobBehaviour,
  status?: number,
): SpeechFailure<Setup> {
  const provoke = ({ upstream }: Setup) => {
    upstream.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}

describeSpeechProvider("fal", createSetup, [
  failure("no audio", "bad_answer", { result: { status: 200, body: { audio: null } } }, 200),
  failure("an empty file", "bad_answer", { file: Buffer.alloc(0) }, 200),
  failure("what is no wav", "bad_answer", { file: Buffer.from("ID3 not this") }),
  failure("audio that has gone", "network", { expired: 410 }),
  {
    name: "an unknown voice",
    kind: "invalid_request",
    status: 422,
    provoke: () => ({ call: { ...call, voice: "nobody" } }),
  },
]);

describe("fal's speech", () => {
  let given: Awaited<ReturnType<typeof createSetup>>;
  beforeAll(async () => {
    given = await createSetup();
  });
  afterAll(async () => await given.close());
  const speak = async (behaviour: JobBehaviour = {}, changes: Partial<SpeechCall> = {}) => {
    given.upstream.next(behaviour);
    const answer = await given.adapter.synthesize({ ...call, ...changes }, attempt(given.connection).context);
    return { ...answer, samples: Buffer.concat(await Array.fromAsync(answer.audio)) };
  };
  const sent = () => given.upstream.requests.findLast(({ method }) => method === "POST")?.json;

  test("is the samples of the file, in the file's own shape", async () => {
    const { samples, ...answer } = await speak();
    expect(answer).toMatchObject({ format: "pcm", sampleRateHz: 24_000, channels: 1 });
    expect(answer.report()).toBeUndefined();
    expect(samples.equals(falAudio())).toBe(true);
  });

  test("is asked for in the app's words, which options don't change", async () => {
    const options = { temperature: 0.5, text: "another", voice: "another" };
    await speak({}, { options });
    expect(sent()).toEqual({ text: call.input, voice: "tara", temperature: 0.5 });
  });

  test("is cancelled when the signal fires while it is made", async () => {
    const arrived = Promise.withResolvers<void>();
    const never = Promise.withResolvers<void>();
    given.upstream.next({
      beforeAnswer: () => {
        arrived.resolve();
        return never.promise;
      },
    });
    const { context, controller } = attempt(given.connection);
    const speaking = given.adapter.synthesize(call, context);
    await arrived.promise;
    controller.abort();
    await expect(speaking).rejects.toBeInstanceOf(ProviderError);
    await untilIdle(() => given.upstream.openJobs());
    expect(given.upstream.cancelledJobs()).toBe(1);
  });

  test("cut at any byte of a small file is none", async () => {
    const file = wavOf(falAudio().subarray(0, 48));
    for (let bytes = 0; bytes < file.length; bytes += 1) {
      await expect(speak({ file, cut: { file: bytes } }), `${bytes}`).rejects.toBeInstanceOf(ProviderError);
    }
    expect((await speak({ file })).samples).toHaveLength(48);
  });
});
