import { deliveryRecord, destinationRecord } from "../support/services/destination-routes.ts";
import type { GatewayServerOptions } from "../support/services/gateway-server.ts";
import { accountKey, ledgerEntry, providerKey } from "./fake-account.ts";
import { activityItem, generationEvent, seriesPoint } from "./fake-usage.ts";

/** The services that the routes of records call, each of whose RPCs answers by `answering` with one whole answer. */
export function recordServices(answering: <A>(answer: A) => () => A): GatewayServerOptions {
  const key = answering({ key: accountKey() });
  const newKey = answering({ key: accountKey(), secret: "sk-new" });
  const destination = answering({ destination: destinationRecord() });

  return {
    usageHandlers: {
      listActivity: answering({ items: [activityItem()] }),
      listActivitySeries: answering({ points: [seriesPoint()], firstByteBoundsMs: [100n] }),
      getGeneration: answering({ event: generationEvent() }),
      listGenerations: answering({ events: [generationEvent()], nextPageToken: "1.gen-1" }),
    },
    accountHandlers: {
      keys: {
        listKeys: answering({ keys: [accountKey()], totalCount: 1n }),
        createKey: newKey,
        getKey: key,
        updateKey: key,
        deleteKey: answering({}),
        rotateKey: newKey,
        getCurrentKey: key,
      },
      credits: {
        getCredits: answering({ totalCreditsNanoUsd: 2n, totalUsageNanoUsd: 1n }),
        listLedgerEntries: answering({ entries: [ledgerEntry()], nextPageToken: "7" }),
      },
      providerKeys: {
        listProviderKeys: answering({ providerKeys: [providerKey()] }),
        createProviderKey: answering({ providerKey: providerKey() }),
        getProviderKey: answering({ providerKey: providerKey() }),
        updateProviderKey: answering({ providerKey: providerKey() }),
        deleteProviderKey: answering({}),
      },
    },
    destinationHandlers: {
      listDestinations: answering({ destinations: [destinationRecord()], totalCount: 1n }),
      createDestination: destination,
      getDestination: destination,
      updateDestination: destination,
      deleteDestination: answering({}),
      testDestination: answering({ ok: true, responseStatus: 200 }),
      listDeliveries: answering({ deliveries: [deliveryRecord()], totalCount: 1n }),
      resumeDestination: destination,
    },
  };
}
