import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { queueEvents } from "../../../test/support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationServer,
} from "../../../test/support/services/destination-server.ts";
import { lostEvent, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import type { DestinationType } from "./contract.ts";
import { destinationTypes } from "./registry.ts";
import type { DestinationTypeStage } from "./type-stage.suite.ts";

const patient = { timeoutMs: 25_000 };
const secretHeader = "canary0123456789canary0123456789";

/** A type that is built in, in the service and on PostgreSQL. */
export function describeInService<C>(type: DestinationType<C>, stage: () => DestinationTypeStage): void {
  describe("in the service", () => {
    let server: TestDestinationServer;
    beforeEach(async () => {
      server = await startTestDestinationServer({ types: destinationTypes });
    });
    afterEach(() => server.close());
    const open = async (config: JsonObject) => {
      const account = await server.newAccount();
      const own = server.client(DestinationService, `Bearer ${account.managementKey}`);
      const { destination } = await own.createDestination({ type: type.slug, name: type.slug, config });
      return { account, own, id: destination?.id ?? "", shown: destination?.config ?? {} };
    };

    test("an account gets what it did, whatever came of it", async () => {
      const { receiver, configAt, read } = stage();
      const config = { ...configAt(receiver.baseUrl), headers: { "x-token": secretHeader } };
      const { account, own, id, shown } = await open(config);
      expect(JSON.stringify(shown)).not.toContain(secretHeader);
      const secrets = type.secrets.filter((name) => name in config);
      for (const name of secrets) expect(shown[name]).not.toBe((config as JsonObject)[name]);
      expect(await own.testDestination({ id })).toMatchObject({ ok: true, cause: "" });
      const before = receiver.requests.length;
      const { accountId } = account;
      await queueEvents(
        server.database,
        usageEvent({ eventId: "gen-tts-1", accountId }),
        usageEvent({ eventId: "gen-tts-2", accountId, outcome: 2, reason: "provider_failed" }),
        lostEvent({ eventId: "gen-tts-3", accountId }),
      );
      server.destination.start();
      const taken = async () => {
        const deliveries = await Promise.all(receiver.requests.slice(before).map(read));
        return deliveries.flatMap(({ events }) => events.map(({ eventId }) => eventId)).sort();
      };
      await waitUntil(async () => (await taken()).length >= 3, patient);
      expect(await taken()).toEqual(["gen-tts-1", "gen-tts-2", "gen-tts-3"]);
      const log = await waitUntil(async () => {
        const { deliveries } = await own.listDeliveries({ destinationId: id });
        return deliveries.length > 0 ? deliveries : undefined;
      }, patient);
      expect(log).toMatchObject([{ eventCount: 3, attempt: 1, cause: "" }]);
    });

    test("a test connection says that the credentials are wrong", async (context) => {
      const { receiver, wrongConfigAt = context.skip("the type has no credentials of its own") } = stage();
      const { own, id } = await open(wrongConfigAt(receiver.baseUrl));
      const { ok, responseStatus, cause } = await own.testDestination({ id });
      expect(ok).toBe(false);
      expect([401, 403]).toContain(responseStatus);
      expect(cause).toMatch(/credentials|secret|signature|key/);
    });
  });
}
