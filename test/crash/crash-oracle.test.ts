import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import type { ClientOutcome } from "./crash-load.ts";
import { type CrashEvidence, judge, type StoredRecord } from "./crash-oracle.ts";
import { crashRequest } from "./crash-traffic.ts";

const request = crashRequest("load", 0, ["a", "b"], 1);
const { tag } = request;
const cost = request.costNanoUsd ?? 1n;
const killed = { name: `${request.api} ${request.side}`, fromMs: 2000, toMs: 3000 };

function client(changes: Partial<ClientOutcome> = {}): ClientOutcome {
  const times = { startedMs: 1000, endedMs: 4000 };
  return { request, ...times, result: "whole", status: 200, reason: "", namesAttempts: false, ...changes };
}

function record(event: MessageInitShape<typeof GenerationEventSchema> = {}): StoredRecord {
  const whole = { revision: 1, outcome: Outcome.SUCCEEDED, costNanoUsd: cost, attempts: [{}], ...event };
  const made: GenerationEvent = create(GenerationEventSchema, { sessionId: tag, ...whole });
  return { revision: made.revision, costNanoUsd: made.costNanoUsd, event: made };
}

const lost = record({ revision: 0, outcome: Outcome.LOST, costNanoUsd: 0n, attempts: [] });
const failed = record({ outcome: Outcome.FAILED, costNanoUsd: 0n });
const cut = client({ result: "cut" });

interface Case extends Partial<Omit<CrashEvidence, "clients" | "records" | "visits">> {
  readonly client?: ClientOutcome;
  readonly records?: readonly StoredRecord[];
  readonly visits?: number;
}

function faultsOf({ client: told = client(), records = [record()], visits = 1, absences = [] }: Case) {
  const { faults } = judge({
    clients: new Map([[tag, told]]),
    visits: new Map(visits === 0 ? [] : [[tag, visits]]),
    records: new Map(records.length === 0 ? [] : [[tag, records]]),
    absences,
  });
  return faults;
}

describe("nothing is wrong with", () => {
  test.for<[string, Case]>([
    ["a whole answer", {}],
    [
      "a failure that was told",
      { client: client({ result: "refused", namesAttempts: true }), records: [failed] },
    ],
    ["a refusal", { client: client({ result: "refused" }), records: [], visits: 0 }],
    ["a second attempt", { records: [record({ attempts: [{}, {}] })], visits: 2 }],
    ["what died with its process", { client: cut, records: [lost], absences: [killed] }],
    [
      "what was cut off from its account before any attempt",
      {
        client: client({ result: "refused" }),
        records: [lost],
        visits: 0,
        absences: [{ name: `account ${request.side}`, fromMs: 1500, toMs: 30_000 }],
      },
    ],
  ])("%s", ([, evidence]) => {
    expect(faultsOf(evidence)).toEqual([]);
  });
});

describe("it finds", () => {
  test.for<[string, Case]>([
    ["was answered and has no record", { records: [], visits: 0 }],
    ["was seen upstream and has no record", { client: cut, records: [] }],
    [
      "names attempts and has no record",
      { client: client({ result: "refused", namesAttempts: true }), records: [] },
    ],
    ["has 2 records", { records: [record(), record()] }],
    ["was answered and its record says LOST", { records: [lost], absences: [killed] }],
    ["was answered and its record says FAILED", { records: [failed] }],
    ["failed and its record says SUCCEEDED", { client: client({ result: "refused", namesAttempts: true }) }],
    [`costs ${cost + 1n}, not ${cost}`, { records: [record({ costNanoUsd: cost + 1n })] }],
    ["succeeded and was never seen upstream", { visits: 0 }],
    ["names 1 attempts and the upstream saw 2", { visits: 2 }],
    ["is lost and costs 5", { client: cut, records: [{ ...lost, costNanoUsd: 5n }], absences: [killed] }],
    ["is lost though its process lived", { client: cut, records: [lost] }],
    [
      "is lost though its process lived",
      { client: cut, records: [lost], absences: [{ ...killed, fromMs: 500 }] },
    ],
    [
      "is lost though its process lived",
      { client: cut, records: [lost], absences: [{ ...killed, name: "usage a" }] },
    ],
    [
      "is lost though its process lived",
      {
        client: cut,
        records: [lost],
        absences: [{ name: `account ${request.side}`, fromMs: 1500, toMs: 30_000 }],
      },
    ],
    [
      "is lost though its process lived",
      {
        client: cut,
        records: [lost],
        visits: 0,
        absences: [{ name: "account a", fromMs: 1500, toMs: 3000 }],
      },
    ],
  ])("%s", ([fault, evidence]) => {
    expect(faultsOf(evidence)).toContainEqual(expect.stringContaining(fault));
  });

  test("what nobody sent", () => {
    const evidence = { clients: new Map(), absences: [] };
    const visits = new Map([["stray-0001", 1]]);
    const records = new Map([["stray-0002", [record()]]]);
    expect(judge({ ...evidence, visits, records }).faults).toEqual([
      "stray-0001: seen upstream, and nobody sent it",
      "stray-0002: has a record, and nobody sent it",
    ]);
  });
});
