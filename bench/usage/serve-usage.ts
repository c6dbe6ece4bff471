import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind } from "../../gen/media/account/v1/key_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { UsageDatabase } from "../../services/usage/store.ts";
import { createUsageService } from "../../services/usage/usage-service.ts";
import { awayBus } from "../../test/fakes/away-bus.ts";

/** The usage service on a port of its own, for a caller with a management key of this account. */
export async function serveUsage(
  database: UsageDatabase,
  caller: Exclude<MessageInitShape<typeof PrincipalSchema>, { $typeName: string }>,
) {
  const principal = create(PrincipalSchema, { ...caller, keyKind: KeyKind.MANAGEMENT });
  const usage = createUsageService({
    database,
    log: silentLog,
    bus: awayBus,
    retentionDays: 400,
    authenticateKey: async () => principal,
    verifyToken: () => Promise.reject(new Error("no token is sent")),
  });
  const server = await startRpcServer({ ...usage, host: "127.0.0.1", port: 0, log: silentLog });
  const transport = createRemoteTransport({
    baseUrl: `http://127.0.0.1:${server.port}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", "Bearer sk-bench");
        return next(request);
      },
    ],
  });
  return {
    client: createRpcClient(UsageService, transport),
    close: () => server.drain({ delayMs: 0, timeoutMs: 1000 }),
  };
}
