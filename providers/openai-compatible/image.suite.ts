import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import type { OpenAiUpstream, OpenAiUpstreamOptions } from "../../test/upstreams/openai/openai.ts";
import type { ImageBehaviour } from "../../test/upstreams/openai/openai-image-behaviour.ts";
import type { ImageCall, ImageFormat, ProviderErrorKind, ProviderManifest } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";

/** A provider of this dialect, the stand-in for its upstream, and one of its calls that the stand-in takes. */
export interface CompatibleImage {
  readonly manifest: ProviderManifest;
  startUpstream(options: OpenAiUpstreamOptions): Promise<OpenAiUpstream>;
  readonly call: Pick<ImageCall, "upstreamModel"> & Partial<Pick<ImageCall, "size" | "quality" | "settings">>;
  /** Formats that the upstream encodes itself. */
  readonly formats: readonly ImageFormat[];
  /** Whether it makes several images a request, and whether it sends previews. */
  readonly several: boolean;
  readonly previews: boolean;
}

interface Setup extends ImageProviderSetup {
  readonly upstream: OpenAiUpstream;
}

/** The acceptance suite of a provider that draws by this dialect, with the failures that the dialect distinguishes. */
export function describeCompatibleImage(name: string, image: CompatibleImage): void {
  describeImageProvider(name, () => createSetup(image), failures);
}

const apiKey = "sk-the-right-one";
const prompt = "A picture nobody else may know of.";

async function createSetup(image: CompatibleImage): Promise<Setup> {
  // Slow enough for what looks at an answer amid its events.
  const otherwiseImage = { kind: "image", intervalMs: 50 } as const;
  const upstream = await image.startUpstream({ apiKey, otherwiseImage });
  const http = createOutboundHttp();
  const { image: adapter } = await image.manifest.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no images");
  const [format = "png"] = image.formats;
  const call: ImageCall = {
    prompt,
    n: 1,
    size: undefined,
    quality: "auto",
    background: "auto",
    format,
    compression: undefined,
    seed: undefined,
    references: [],
    stream: false,
    options: {},
    settings: {},
    ...image.call,
  };
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    formats: image.formats,
    ...(image.several && { severalCall: { ...call, n: 3 } }),
    ...(image.previews && { streamCall: { ...call, stream: true } }),
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

function failure(
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

function refused(status: number): ImageBehaviour {
  return { kind: "error", status, message: `${apiKey} may not say: ${prompt}` };
}

const failures: readonly ImageFailure<Setup>[] = [
  failure("a limit", "overloaded", 429, refused(429)),
  failure("a broken upstream", "upstream", 500, refused(500)),
  failure("an answer without images", "bad_answer", 200, { kind: "image", content: "nothing" }),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "sk-a-wrong-one" } }),
  },
];
