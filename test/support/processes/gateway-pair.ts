import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind, KeyScope } from "../../../gen/media/account/v1/key_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { ensureKeyFiles } from "../../../lib/identity/key-files.ts";
import { openServiceKeySet } from "../../../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../../../lib/identity/service-token.ts";
import { serverInterceptor } from "../../../lib/rpc/interceptors.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import type { SpeechHandlers } from "../services/gateway-server.ts";
import { type Child, startChild } from "./child.ts";

/** Two gateways that are processes of their own; account and speech are played in this one. */
export interface GatewayPair extends AsyncDisposable {
  readonly gateways: readonly Child[];
  readonly baseUrls: readonly string[];
}

/** What a test makes of them. */
export interface GatewayPairOptions {
  readonly synthesize: NonNullable<SpeechHandlers["synthesize"]>;
  /** Of the speech service, besides its own; they are told how tokens are checked. */
  readonly interceptors?: (verifyToken: ReturnType<typeof createTokenVerifier>) => readonly Interceptor[];
  /** Of the gateways. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts them; every key is a good one with a bucket of its own. */
export async function startGatewayPair(options: GatewayPairOptions): Promise<GatewayPair> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "gateway-pair-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const files = await ensureKeyFiles(folder);
  const services = await startServices(options, files.jwksFile);
  stack.defer(() => services.drain({ delayMs: 0, timeoutMs: 0 }));
  const url = `http://127.0.0.1:${services.port}`;
  const env = {
    HOST: "127.0.0.1",
    PORT: "0",
    ACCOUNT_URL: url,
    SPEECH_URL: url,
    SERVICE_KEY_FILE: files.keyFile("gateway"),
    DRAIN_DELAY_MS: "0",
    METRICS_PORT: "off",
    ...options.env,
  };
  const gateways = [1, 2].map(() => startChild("gateway/main.ts", { env }));
  for (const gateway of gateways) stack.defer(() => gateway.kill());
  const ports = await Promise.all(gateways.map((gateway) => gateway.listeningPort("rest")));
  const kept = stack.move();
  return {
    gateways,
    baseUrls: ports.map((port) => `http://127.0.0.1:${port}`),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function startServices({ synthesize, interceptors = () => [] }: GatewayPairOptions, jwksFile: string) {
  const verifyToken = createTokenVerifier(await openServiceKeySet({ path: jwksFile, log: silentLog }));
  const own = [serverInterceptor(silentLog)];
  const inference = { accountId: "a", keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] };
  return startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [AccountInternalService, SpeechService],
    readiness: async () => [],
    log: silentLog,
    routes(router) {
      const authenticate = ({ keyHash }: { keyHash: string }) => ({
        principal: create(PrincipalSchema, { ...inference, keyHash, rateBucket: keyHash }),
      });
      router.service(AccountInternalService, { authenticate }, { interceptors: own });
      router.service(SpeechService, { synthesize }, { interceptors: [...own, ...interceptors(verifyToken)] });
    },
  });
}
