import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { ProviderError } from "../../providers/contract.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { FakeSpeaker } from "../../test/fakes/fake-speech.ts";
import { recordSpans } from "../../test/fakes/recorded-spans.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { synthesize } from "./synthesize.ts";

const told = [
  ["first", 503, "provider_overloaded"],
  ["second", 0, "provider_bad_answer"],
  ["third", 200, "provider_failed"],
] as const;

test("every attempt of a request is told in its record, in the log, in the trace and in its error", async () => {
  const paid = new FakePaidRequests();
  const { tracer, ended } = recordSpans();
  const logged: string[] = [];
  const destination = { write: (line: string) => void logged.push(line) };
  const log = createLog({ name: "test", level: "trace", destination });
  const speakers = {
    first: new FakeSpeaker({ before: [new ProviderError("overloaded", "busy", { status: 503 })] }),
    second: new FakeSpeaker({ audio: [] }),
    third: new FakeSpeaker({
      audio: [Buffer.from("audio"), new ProviderError("upstream", "broke", { status: 200 })],
    }),
  };
  const dependencies = speechDependencies(speakers, { paid });
  const attribution = { ...someAttribution, span: tracer.begin("request", "server", undefined) };
  const { signal } = new AbortController();
  const frames = synthesize(speechRequest(), attribution, dependencies, signal, log);
  const error = await Array.fromAsync(frames).catch((thrown: unknown) => thrown);

  expect(paid.event().attempts).toMatchObject(
    told.map(([providerSlug, providerStatus, reason]) => ({ providerSlug, providerStatus, reason })),
  );
  expect(logged.map((line) => JSON.parse(line))).toMatchObject(
    told.map(([provider, provider_status, reason]) => ({
      msg: "attempt failed",
      provider,
      provider_status,
      reason,
    })),
  );
  const spans = ended().filter(({ name }) => name.startsWith("generate_content"));
  expect(spans.map(({ attributes }) => attributes)).toMatchObject(
    told.map(([provider, status, reason], index) => ({
      "gen_ai.provider.name": provider,
      "media.attempt": index + 1,
      "error.type": reason,
      ...(status === 0 ? {} : { "http.response.status_code": status }),
    })),
  );
  expect(error).toMatchObject({
    attempts: told.map(([provider, providerStatus, reason]) => ({
      endpointId: `endpoint-of-${provider}`,
      providerStatus,
      reason: ErrorReason[reason.toUpperCase() as keyof typeof ErrorReason],
    })),
  });
});
