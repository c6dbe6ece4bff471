import { expect, test } from "vitest";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { createLocalTransport, createRpcClient } from "../rpc/client.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { createOwnKeys } from "./own-keys.ts";

function scene() {
  const asked: string[] = [];
  const stored = new Map<string, string>();
  const account = { away: false };
  const transport = createLocalTransport((router) =>
    router.service(AccountInternalService, {
      resolveProviderKey({ accountId, providerSlug }) {
        asked.push(`${accountId} ${providerSlug}`);
        if (account.away) throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away").toConnectError();
        const secret = stored.get(`${accountId} ${providerSlug}`) ?? "";
        return { id: secret === "" ? "" : "key-1", secret };
      },
    }),
  );
  const clock = new ManualClock();
  const ownKeys = createOwnKeys({ account: createRpcClient(AccountInternalService, transport), clock });
  return { asked, stored, account, clock, ownKeys };
}

test("has the keys of the account alone, at the providers asked for", async () => {
  const { stored, ownKeys } = scene();
  stored.set("ada acme", "secret-1").set("ada zenith", "secret-2").set("bob acme", "secret-3");
  expect(await ownKeys("ada", ["acme", "other"])).toEqual(new Map([["acme", "secret-1"]]));
  expect(await ownKeys("bob", ["acme"])).toEqual(new Map([["acme", "secret-3"]]));
  expect(await ownKeys("cleo", ["acme"])).toEqual(new Map());
});

test("asks once in five seconds, whether there is a key or not, and once for all who wait", async () => {
  const { asked, stored, clock, ownKeys } = scene();
  stored.set("ada acme", "secret-1");
  await Promise.all([ownKeys("ada", ["acme"]), ownKeys("ada", ["acme"]), ownKeys("ada", ["zenith"])]);
  clock.advance(4999);
  await ownKeys("ada", ["acme", "zenith"]);
  expect(asked).toEqual(["ada acme", "ada zenith"]);
  clock.advance(1);
  stored.delete("ada acme");
  expect(await ownKeys("ada", ["acme"])).toEqual(new Map());
});

test("asks nobody where no provider takes own keys", async () => {
  const { asked, ownKeys } = scene();
  expect(await ownKeys("ada", [])).toEqual(new Map());
  expect(asked).toEqual([]);
});

test("fails while account is away, and works once it is back", async () => {
  const { stored, account, ownKeys } = scene();
  stored.set("ada acme", "secret-1");
  account.away = true;
  await expect(ownKeys("ada", ["acme"])).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  account.away = false;
  expect(await ownKeys("ada", ["acme"])).toEqual(new Map([["acme", "secret-1"]]));
});
