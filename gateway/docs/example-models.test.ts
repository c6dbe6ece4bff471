import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { imageModelFixture, speechModelFixture } from "../../test/fakes/model-fixtures.ts";
import { type GatewayServerOptions, startGatewayServer } from "../../test/support/services/gateway-server.ts";

/** What the examples of speech and images name, in documents asked for one after the other. */
async function examplesOf(options: GatewayServerOptions, times = 1): Promise<unknown[][]> {
  await using gateway = await startGatewayServer(options);
  const named: unknown[][] = [];
  for (let time = 0; time < times; time++) {
    const response = await fetch(`${gateway.baseUrl}/api/v1/openapi.json`);
    expect(response.status).toBe(200);
    const { paths } = (await response.json()) as {
      paths: Record<
        string,
        { post: { requestBody: { content: Record<string, { examples: { more: { value: object } } }> } } }
      >;
    };
    named.push(
      ["/audio/speech", "/images"].map(
        (path) => paths[path]?.post.requestBody.content["application/json"]?.examples.more.value,
      ),
    );
  }
  return named;
}

test("examples name what the services list first, who are not asked anew for every reader", async () => {
  let asked = 0;
  const found = await examplesOf(
    {
      handlers: {
        listSpeechModels() {
          asked++;
          return { models: [speechModelFixture, { ...speechModelFixture, id: "other/voice" }] };
        },
      },
      imageHandlers: { listImageModels: () => ({ models: [imageModelFixture] }) },
    },
    3,
  );
  for (const examples of found) {
    expect(examples).toMatchObject([
      { model: speechModelFixture.id, voice: speechModelFixture.defaultVoice },
      { model: imageModelFixture.id },
    ]);
  }
  expect(asked).toBe(1);
});

test("examples have placeholders where no service says better", async () => {
  const found = await examplesOf({
    handlers: {
      listSpeechModels() {
        throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
      },
    },
    imageHandlers: { listImageModels: () => ({ models: [] }) },
  });
  expect(found).toMatchObject([[{ model: "author/model", voice: "a-voice" }, { model: "author/model" }]]);
});
