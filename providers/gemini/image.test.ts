import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import {
  type GeminiBehaviour,
  type GeminiUpstream,
  geminiImage,
  startGemini,
} from "../../test/upstreams/gemini.ts";
import { attempt } from "../adapter.suite.ts";
import { type ImageCall, ProviderError, type ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { gemini } from "./index.ts";

const apiKey = "the-right-key";
const call: ImageCall = {
  upstreamModel: "gemini-3-pro-image",
  prompt: "A boat nobody else may see.",
  n: 1,
  size: undefined,
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: { image_size: true },
};

interface Setup extends ImageProviderSetup {
  readonly upstream: GeminiUpstream;
}

async function createSetup() {
  const upstream = await startGemini(apiKey);
  const http = createOutboundHttp();
  const { image: adapter } = await gemini.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no images");
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

const failure = (name: string, kind: ProviderErrorKind, behaviour: GeminiBehaviour, status?: number) => ({
  name,
  kind,
  ...(status !== undefined && { status }),
  provoke({ upstream }: Setup) {
    upstream.next(behaviour);
    return undefined;
  },
});

const failures: readonly ImageFailure<Setup>[] = [
  failure("a prompt that is blocked", "content_policy", { blockReason: "SAFETY" }, 200),
  failure("an image that is filtered", "content_policy", { finishReason: "IMAGE_SAFETY" }, 200),
  failure("no image for no reason", "upstream", { finishReason: "NO_IMAGE" }, 200),
  failure(
    "429",
    "overloaded",
    {
      error: {
        status: 429,
        body: { error: { code: 429, status: "RESOURCE_EXHAUSTED", message: call.prompt } },
      },
    },
    429,
  ),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 400,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
];

describeImageProvider("Gemini", createSetup, failures);

describe("Gemini's images", () => {
  let given: Awaited<ReturnType<typeof createSetup>>;
  beforeAll(async () => {
    given = await createSetup();
  });
  afterAll(async () => await given.close());
  const ask = async (behaviour: GeminiBehaviour = {}, changes: Partial<ImageCall> = {}) => {
    given.upstream.next(behaviour);
    const answer = await given.adapter.generate({ ...call, ...changes }, attempt(given.connection).context);
    return { answer, output: await Array.fromAsync(answer.output) };
  };
  const sent = () => given.upstream.requests.at(-1)?.json;

  test("are asked for in the vendor's words, references first", async () => {
    const bytes = Buffer.from("pixels");
    await ask(
      {},
      {
        shape: { aspectRatio: "16:9", resolution: "2K" },
        references: [{ bytes, mediaType: "image/png" }],
        options: { temperature: 1, imageConfig: { aspectRatio: "1:1" } },
      },
    );
    expect(sent()).toEqual({
      contents: [
        {
          role: "user",
          parts: [
            { inlineData: { mimeType: "image/png", data: bytes.toString("base64") } },
            { text: call.prompt },
          ],
        },
      ],
      generationConfig: {
        temperature: 1,
        responseModalities: ["IMAGE"],
        imageConfig: { aspectRatio: "16:9", imageSize: "2K" },
      },
    });
    await ask({}, { shape: { aspectRatio: "16:9", resolution: "1K" }, settings: {} });
    expect(sent()).toMatchObject({ generationConfig: { imageConfig: { aspectRatio: "16:9" } } });
    expect(JSON.stringify(sent())).not.toContain("imageSize");
  });

  test("are what they are, thoughts left out, whatever was asked for", async () => {
    const { output, answer } = await ask({ imageFormat: "jpeg", thoughts: true });
    expect(output).toMatchObject([{ kind: "image", mediaType: "image/jpeg" }]);
    const [image] = output;
    const bytes = image !== undefined && image.kind === "image" ? image.bytes : [];
    expect(Buffer.from(bytes).equals(await geminiImage("jpeg"))).toBe(true);
    expect(answer.report()?.tokens).toMatchObject({
      prompt: 300,
      imagePrompt: 258,
      completion: 1340,
      imageCompletion: 1290,
      reasoning: 50,
    });
  });

  test.each([[null], [{ promptTokenCount: 3 }]])("report what the vendor reports: %j", async (usage) => {
    const { tokens } = (await ask({ usage })).answer.report() ?? {};
    if (usage === null) expect(tokens).toBeUndefined();
    else expect(tokens).toMatchObject({ prompt: 3, completion: 0 });
  });

  test("cut at any byte are none", async () => {
    await ask();
    const length = given.upstream.requests.at(-1)?.sentBytes ?? 0;
    const cuts = [...Array(400).keys(), length - 400].map((cut) => cut + 1);
    cuts.push(...Array.from({ length: 398 }, (_, back) => length - 1 - back));
    for (const cutAfterBytes of cuts) {
      await expect(ask({ cutAfterBytes }), `cut after ${cutAfterBytes}`).rejects.toBeInstanceOf(
        ProviderError,
      );
    }
  });
});
