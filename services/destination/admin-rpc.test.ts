import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { PauseReason } from "../../gen/media/destination/v1/destination_pb.ts";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { addDestination } from "../../test/support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../../test/support/services/destination-server.ts";
import { testUuid } from "../../test/support/services/usage-events.ts";
import { readBacklog } from "./delivery/backlog.ts";

let server: TestDestinationServer;
let admin: Client<typeof DestinationAdminService>;
let account: TestDestinationAccount;
let id: string;

beforeAll(async () => {
  server = await startTestDestinationServer();
  admin = server.client(DestinationAdminService, await server.account.tokenOf("operator", "destination"));
  account = await server.newAccount();
  id = await addDestination(server.database, {
    account_id: account.accountId,
    url: "http://127.0.0.1:1/",
    config: {},
  });
});

afterAll(() => server.close());

async function audit(): Promise<string[]> {
  const { entries } = await (await server.account.admin()).listAuditEntries({ accountId: account.accountId });
  const own = entries.filter(({ action }) => action.startsWith("destination."));
  return own.map(({ operator, action, subject }) => `${operator} ${action} ${subject}`);
}

async function reasonOf(call: Promise<unknown>): Promise<ErrorReason | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown).reason,
  );
}

test("an operator pauses a destination, and it or its owner resumes it", async () => {
  const { accountId } = account;
  const own = server.client(DestinationService, `Bearer ${account.managementKey}`);
  const shown = async () => (await own.getDestination({ id })).destination;
  const { destination } = await admin.pauseAccountDestination({ accountId, id });
  expect(destination).toMatchObject({ id, enabled: true, pauseReason: PauseReason.OPERATOR });
  expect(await shown()).toEqual(destination);
  expect(await readBacklog(server.database)).toMatchObject({ pausedDestinations: 0 });
  await admin.resumeAccountDestination({ accountId, id });
  expect(await shown()).toMatchObject({ pauseReason: PauseReason.UNSPECIFIED });
  await admin.pauseAccountDestination({ accountId, id });
  await own.resumeDestination({ id });
  expect(await shown()).toMatchObject({ pauseReason: PauseReason.UNSPECIFIED });
  expect(await audit()).toEqual([
    `ada destination.pause ${id}`,
    `ada destination.resume ${id}`,
    `ada destination.pause ${id}`,
  ]);
});

test("an operator tries a destination and hears what came of it", async () => {
  const { accountId } = account;
  const answer = await admin.testAccountDestination({ accountId, id });
  expect(answer).toMatchObject({ ok: false, responseStatus: 0 });
  expect(answer.cause).not.toBe("");
  expect((await audit())[0]).toBe(`ada destination.test ${id}`);
});

test("what is not the account's does not exist, and nobody but operators may ask", async () => {
  const before = await audit();
  const others = { accountId: testUuid(9), id };
  const calls = (client: typeof admin, request: typeof others) => [
    client.pauseAccountDestination(request),
    client.resumeAccountDestination(request),
    client.testAccountDestination(request),
  ];
  const { RECORD_UNKNOWN, CALLER_NOT_ALLOWED } = ErrorReason;
  expect(new Set(await Promise.all(calls(admin, others).map(reasonOf)))).toEqual(new Set([RECORD_UNKNOWN]));
  const managing = server.client(DestinationAdminService, `Bearer ${account.managementKey}`);
  const refused = calls(managing, { accountId: account.accountId, id }).map(reasonOf);
  expect(new Set(await Promise.all(refused))).toEqual(new Set([CALLER_NOT_ALLOWED]));
  expect(await audit()).toEqual(before);
});
