import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai.ts";
import type { ImageBehaviour } from "../../test/upstreams/openai-image-behaviour.ts";
import type { ImageCall, ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { openai } from "./index.ts";

const apiKey = "sk-the-right-one";
const prompt = "A picture nobody else may know of.";

interface Setup extends ImageProviderSetup {
  readonly upstream: OpenAiUpstream;
}

const call: ImageCall = {
  upstreamModel: "gpt-image-1.5",
  prompt,
  n: 1,
  size: { width: 1024, height: 1024 },
  quality: "low",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

async function createSetup(): Promise<Setup> {
  // Slow enough for what looks at an answer amid its events.
  const otherwiseImage = { kind: "image", intervalMs: 50 } as const;
  const upstream = await startOpenAiUpstream({ apiKey, otherwiseImage });
  const http = createOutboundHttp();
  const { image: adapter } = openai.create({ http });
  if (adapter === undefined) throw new Error("no images");
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    formats: ["png", "jpeg", "webp"],
    severalCall: { ...call, n: 3 },
    streamCall: { ...call, stream: true },
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

function told(
  name: string,
  kind: ProviderErrorKind,
  status: number,
  behaviour: ImageBehaviour,
): ImageFailure<Setup> {
  return {
    name,
    kind,
    status,
    provoke({ upstream }) {
      upstream.next(behaviour);
      return undefined;
    },
  };
}

const refused = (status: number): ImageBehaviour => ({
  kind: "error",
  status,
  message: `${apiKey} may not say: ${prompt}`,
});

describeImageProvider("OpenAI", createSetup, [
  told("a limit", "overloaded", 429, refused(429)),
  told("a broken upstream", "upstream", 500, refused(500)),
  told("an answer without images", "bad_answer", 200, { kind: "image", content: "nothing" }),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "sk-a-wrong-one" } }),
  },
]);
