import { create, type DescService } from "@bufbuild/protobuf";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../../gen/media/account/v1/key_pb.ts";
import { createOutboundHttp } from "../../../lib/http/outbound-fetch.ts";
import { createLocalTransport, createRemoteTransport, createRpcClient } from "../../../lib/rpc/client.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { createLog, silentLog } from "../../../lib/runtime/log.ts";
import type { Service } from "../../../lib/service/run-service.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../../providers/catalog/load.ts";
import { createProviders } from "../../../providers/registry.ts";
import type { SpeechServiceOptions } from "../../../services/speech/speech-service.ts";
import { FakePaidRequests } from "../../fakes/fake-paid-requests.ts";
import { noResultFetches } from "../../fakes/no-results.ts";
import { unlimited } from "../../fakes/unlimited.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../upstreams/openai/openai.ts";

/** A client of a generating service, the vendor behind it, and what the service logged and charged. */
export interface VendorScene<S extends DescService> {
  readonly client: Client<S>;
  readonly upstream: OpenAiUpstream;
  readonly logged: readonly string[];
  readonly paid: FakePaidRequests;
}

/** How clients get to a service. */
export type Reach = (service: Service, body: (transport: Transport) => Promise<void>) => Promise<void>;

const bearer: Interceptor = (next) => (request) => {
  request.header.set("authorization", "Bearer sk-a-key");
  return next(request);
};

/** Far more than any call takes: the machine may have other work. */
const defaultTimeoutMs = 60_000;

/** As the standalone does. */
export const inProcess: Reach = (service, body) =>
  body(createLocalTransport(service.routes, { interceptors: [bearer], defaultTimeoutMs }));

/** As processes of their own do. */
export function overSocket(options: Partial<Parameters<typeof createRemoteTransport>[0]> = {}): Reach {
  return async (service, body) => {
    const server = await startRpcServer({ ...service, host: "127.0.0.1", port: 0, log: silentLog });
    try {
      const baseUrl = `http://127.0.0.1:${server.port}`;
      await body(createRemoteTransport({ defaultTimeoutMs, ...options, baseUrl, interceptors: [bearer] }));
    } finally {
      await server.drain({ delayMs: 0, timeoutMs: 0 });
    }
  };
}

/** What a service is made with here, whatever it makes. */
export type VendorOptions = Omit<SpeechServiceOptions, "limits">;

/** Runs `body` against a service with its own providers and catalogue; the vendor is a stand-in, if it is on. */
export async function withVendor<S extends DescService>(
  { desc, start, isOn = true }: { desc: S; start: (options: VendorOptions) => Service; isOn?: boolean },
  reach: Reach,
  body: (scene: VendorScene<S>) => Promise<void>,
): Promise<void> {
  const upstream = await startOpenAiUpstream();
  const http = createOutboundHttp();
  const logged: string[] = [];
  const paid = new FakePaidRequests();
  const destination = { write: (line: string) => void logged.push(line) };
  const log = createLog({ name: "test", level: "trace", destination });
  const environment = isOn ? { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: upstream.baseUrl } : {};
  const providers = createProviders({ environment, http, results: noResultFetches, log });
  const service = start({
    catalog: await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs: providers.slugs }),
    providers,
    paid,
    limiter: unlimited,
    recordProviderTest: async () => undefined,
    authenticateKey: async () =>
      create(PrincipalSchema, { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH, KeyScope.IMAGES] }),
    verifyToken: () => Promise.reject(new Error("nobody has a token")),
    log,
  });
  try {
    await reach(service, (transport) =>
      body({ client: createRpcClient(desc, transport), upstream, logged, paid }),
    );
  } finally {
    await upstream.close();
    await providers.close();
    await http.close();
  }
}
