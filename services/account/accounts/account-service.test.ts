import type { Interceptor } from "@connectrpc/connect";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../../../lib/identity/authenticate.ts";
import { createLocalTransport, createRpcClient } from "../../../lib/rpc/client.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { awayBus } from "../../../test/fakes/away-bus.ts";
import { startTestAccountServer, testProviderKeys } from "../../../test/support/services/account-server.ts";
import type { AccountTables } from "../store.ts";
import { createAccountService } from "./account-service.ts";

test("without a database the service is not ready, and says unavailable rather than unknown", async () => {
  const database = connectDatabase<AccountTables>({
    url: "postgres://nobody:nothing@127.0.0.1:1/none",
    schema: "account",
    log: silentLog,
  });
  const account = createAccountService({
    database,
    bus: awayBus,
    providerKeys: testProviderKeys,
    limits: { holdGraceMs: 300_000, unseenGraceMs: 30_000, retentionDays: 400 },
    log: silentLog,
    verifyToken: async () => ({ issuer: "gateway", subject: "", principal: undefined }),
  });
  const transportOf = (credential: string) => {
    const authorize: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${credential}`);
      return next(request);
    };
    return createLocalTransport(account.routes, { interceptors: [authorize] });
  };
  expect(await account.readiness()).toEqual(["the database is away"]);
  const unavailable = { reason: ErrorReason.SERVICE_UNAVAILABLE };
  const internal = createRpcClient(AccountInternalService, transportOf("a.b.c"));
  await expect(internal.authenticate({ keyHash: "0".repeat(64) })).rejects.toMatchObject(unavailable);
  const keys = createRpcClient(KeyService, transportOf(generateApiKey()));
  await expect(keys.getCurrentKey({})).rejects.toMatchObject(unavailable);
  await database.destroy();
});

test("a transaction that the database ended for idling is unavailable, as every database that is away", async () => {
  const server = await startTestAccountServer();
  try {
    const internal = server.client(AccountInternalService, await server.tokenOf("gateway"));
    const keyHash = "0".repeat(64);
    await expect(internal.authenticate({ keyHash })).rejects.toMatchObject({
      reason: ErrorReason.KEY_UNKNOWN,
    });
    await sql`alter table account.api_key rename to kept_key`.execute(server.database);
    await sql`create function account.ended() returns setof account.kept_key language plpgsql as
      $$ begin raise exception 'idle' using errcode = '25P03'; end $$`.execute(server.database);
    await sql`create view account.api_key as select * from account.ended()`.execute(server.database);
    await expect(internal.authenticate({ keyHash })).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
  } finally {
    await server.close();
  }
});

test("another process authenticates keys over RPC, and distinguishes a bad key from its own bad token", async () => {
  const server = await startTestAccountServer();
  try {
    const admin = await server.admin();
    const { account } = await admin.createAccount({ name: "a", kind: 1 });
    const { secret } = await admin.createAccountKey({ accountId: account?.id ?? "", key: { name: "k" } });
    const authenticatorOf = (authorization: string) =>
      createKeyAuthenticator({
        lookUp: lookUpOverRpc(server.client(AccountInternalService, authorization)),
      });
    const authenticate = authenticatorOf(await server.tokenOf("gateway"));
    expect(await authenticate(secret)).toMatchObject({ accountId: account?.id, keyName: "k" });
    await expect(authenticate(generateApiKey())).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
    for (const token of [
      "Bearer a.b.c",
      await server.tokenOf("gateway", "speech"),
      await server.tokenOf("operator"),
    ]) {
      await expect(authenticatorOf(token)(secret)).rejects.toMatchObject({
        reason: ErrorReason.SERVICE_UNAVAILABLE,
      });
    }
  } finally {
    await server.close();
  }
});
