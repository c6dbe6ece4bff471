import type { ProviderManifest } from "../contract.ts";
import type { ProviderNetwork } from "../provider-http.ts";
import type { DialectOptions } from "./dialect.ts";
import type { EditShape } from "./image-request.ts";

/** A provider that speaks the dialect, as an operator describes it. */
export interface CompatibleProvider {
  readonly slug: string;
  readonly baseUrl: string;
  readonly network: ProviderNetwork;
  /** How a key is sent; `none`: no request has one. */
  readonly auth:
    | "bearer"
    | "basic"
    | "none"
    | { readonly header: string; readonly scheme?: string | undefined };
  /** Whether it is on without a key, too. */
  readonly keyIsOptional: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Those of OpenAI unless given; voices are not listed without a path. */
  readonly paths: {
    readonly speech?: string | undefined;
    readonly generations?: string | undefined;
    readonly edits?: string | undefined;
    readonly voices?: string | undefined;
  };
  readonly edits: EditShape;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Makes the manifest of such a provider. */
export function createCompatibleManifest(provider: CompatibleProvider): ProviderManifest {
  const { slug, baseUrl, network, auth, keyIsOptional, headers, query, settings, edits, paths } = provider;
  const hasKey = auth !== "none";
  const generationsPath = paths.generations ?? "/v1/images/generations";
  // Where references are members of a body, it is mostly that of the same operation.
  const isOneOperation = edits === "image" || edits === "input_references";
  const editsPath = paths.edits ?? (isOneOperation ? generationsPath : "/v1/images/edits");
  return {
    slug,
    defaultBaseUrl: baseUrl.replace(/\/+$/, ""),
    network,
    needsKey: hasKey && !keyIsOptional,
    takesKey: hasKey,
    async create({ http, fetchResult }) {
      const { createSpeechAdapter } = await import("./speech.ts");
      const { createImageAdapter } = await import("./image.ts");
      const { createVoiceList } = await import("./voices.ts");
      const dialect: DialectOptions = { http, headers, query, settings, authorize: authorizationBy(auth) };
      const { voices } = paths;
      return {
        speech: createSpeechAdapter({ ...dialect, path: paths.speech ?? "/v1/audio/speech" }),
        image: createImageAdapter({ ...dialect, generationsPath, editsPath, edits, fetchResult }),
        ...(voices !== undefined && { listVoices: createVoiceList({ ...dialect, path: voices }) }),
      };
    },
  };
}

/** A key that is not there is not sent, whatever the way. */
function authorizationBy(auth: CompatibleProvider["auth"]): NonNullable<DialectOptions["authorize"]> {
  const [name, valueFor] = headerBy(auth);
  return (apiKey) => (apiKey === "" ? {} : { [name]: valueFor(apiKey) });
}

function headerBy(auth: CompatibleProvider["auth"]): readonly [string, (apiKey: string) => string] {
  if (typeof auth === "object") {
    const { header, scheme } = auth;
    return [header.toLowerCase(), (apiKey) => (scheme === undefined ? apiKey : `${scheme} ${apiKey}`)];
  }
  if (auth === "basic")
    return ["authorization", (apiKey) => `Basic ${Buffer.from(apiKey).toString("base64")}`];
  return ["authorization", (apiKey) => `Bearer ${apiKey}`];
}
