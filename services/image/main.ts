import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { createGuardedFetch } from "../../lib/http/guarded-fetch.ts";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../../lib/identity/authenticate.ts";
import { readServiceKey } from "../../lib/identity/service-key.ts";
import { openServiceKeySet } from "../../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "../../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../../lib/identity/token-interceptor.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/runtime/client.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { runProcess } from "../../lib/runtime/process.ts";
import { startRpcServer } from "../../lib/runtime/server.ts";
import { readTlsFiles } from "../../lib/runtime/tls-files.ts";
import { loadCatalog } from "../../providers/catalog-load.ts";
import { createProviders } from "../../providers/registry.ts";
import { catalogDirectories, drainTimeoutMs, generationSettings, readImageConfig } from "./config.ts";
import { createImageService } from "./image-service.ts";

await runProcess(async () => {
  const config = readImageConfig();
  const log = createLog({ name: "image", level: config.LOG_LEVEL });
  const http = createOutboundHttp();
  const guard = createAddressGuard({ allowedCidrs: config.REFERENCE_ALLOWED_CIDRS });
  const fetchReference = createGuardedFetch({ guard });
  const providers = createProviders({ environment: config.environment, http, log });
  const catalog = await loadCatalog({
    directories: catalogDirectories(config),
    providerSlugs: providers.slugs,
  });
  const signer = createTokenSigner(await readServiceKey(config.SERVICE_KEY_FILE, "image"));
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const account = createRpcClient(
    AccountInternalService,
    createRemoteTransport({
      baseUrl: config.ACCOUNT_URL,
      interceptors: [createTokenInterceptor({ signer, audience: "account" })],
    }),
  );
  const image = createImageService({
    catalog,
    providers,
    ...generationSettings(config),
    fetchReference,
    authenticateKey: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }),
    verifyToken: createTokenVerifier(keys),
    log,
  });
  const server = await startRpcServer({
    ...image,
    host: config.HOST,
    port: config.PORT,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    log,
  });
  logListening(log, "rpc", config.HOST, server.port);
  return {
    log,
    async stop() {
      await server.drain({ delayMs: config.DRAIN_DELAY_MS, timeoutMs: drainTimeoutMs(config) });
      await providers.close();
      await fetchReference.close();
      await http.close();
    },
  };
});
