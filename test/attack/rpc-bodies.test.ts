import type { DescMethod } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { type AccessRule, accessTable } from "../../lib/identity/access.ts";
import { callRaw, type Protocol, type RawAnswer } from "./raw-rpc.ts";
import { rpcOf, rpcServices } from "./rpc-services.ts";
import { expectUnharmed, printDamages, startTarget, type Target, underAttack, unknownKey } from "./target.ts";
import { worstMessages } from "./worst-messages.ts";

/** As much as any RPC but image.Generate has ever taken in one message. */
const messageBytes = 1 << 20;
/** Unpacked size of what is sent packed: a thousand times as much as goes over the wire. */
const unpackedBytes = 32 << 20;

const methods = rpcServices.flatMap(({ methods }) =>
  methods.map((method) => [rpcOf(method), method] as const),
);

let target: Target;
const listsWithoutEnd = Buffer.from(`{"zz":[${"[],".repeat(unpackedBytes / 3)}[]]}`);

beforeAll(async () => {
  target = await startTarget();
}, 120_000);

afterAll(async () => {
  printDamages("bodies of RPCs");
  await target?.close();
});

test("every RPC of the access table is attacked", () => {
  const attacked = new Set(methods.map(([, { parent }]) => parent.typeName));
  expect([...accessTable.keys()].filter((service) => !attacked.has(service))).toEqual([]);
});

describe("nobody's body", () => {
  test.for(methods)("is not looked at by %s", async ([rpc, method]) => {
    const bombs = protocolsOf(method).map(
      (protocol) => ({ protocol, rpc, format: "json", gzip: true }) as const,
    );
    const answers: RawAnswer[] = [];
    const damage = await underAttack(target, `${rpc}, without a good key, packed`, async () => {
      for (const bomb of bombs) {
        for (const key of [undefined, unknownKey])
          answers.push(await callRaw(target.rpcPort, { ...bomb, message: listsWithoutEnd, key }));
      }
    });
    expect(answers.map(({ error }) => error)).toEqual(
      bombs.flatMap(({ protocol }) => Array(2).fill(unauthenticated(protocol))),
    );
    expectUnharmed(damage);
  });
});

describe("a caller's body", () => {
  test.for(methods)("holds nobody up at %s", async ([rpc, method]) => {
    const key = keyFor(method);
    const answers: RawAnswer[] = [];
    const damage = await underAttack(target, `${rpc}, worst messages`, async () => {
      for (const { bytes, format } of worstMessages(method, messageBytes)) {
        for (const protocol of protocolsOf(method)) {
          answers.push(await callRaw(target.rpcPort, { protocol, rpc, format, message: bytes, key }));
        }
      }
    });
    expect(answers.filter(({ error }) => isBug(error))).toEqual([]);
    expectUnharmed(damage);
  });

  test("that is unpacked to far more than it may be is refused", async () => {
    const rpc = rpcOf(KeyService.method.createKey);
    const message = Buffer.alloc(unpackedBytes, " ");
    const answers: RawAnswer[] = [];
    const damage = await underAttack(target, "a packed body of blanks", async () => {
      for (const protocol of protocolsOf(KeyService.method.createKey)) {
        const call = {
          protocol,
          rpc,
          format: "json",
          gzip: true,
          message,
          key: target.managementKey,
        } as const;
        answers.push(await callRaw(target.rpcPort, call));
      }
    });
    expect(answers.map(({ error }) => error)).toEqual(["resource_exhausted", "8", "8"]);
    expectUnharmed(damage);
  });
});

function protocolsOf({ methodKind }: DescMethod): readonly Protocol[] {
  return [methodKind === "unary" ? "Connect" : "Connect stream", "gRPC", "gRPC-Web"];
}

/** The key that comes furthest: what only processes and operators may call refuses both kinds. */
function keyFor({ parent, localName }: DescMethod): string {
  const rule: AccessRule | undefined = accessTable.get(parent.typeName)?.get(localName);
  const isInference = rule?.open === "callers" && rule.key === "inference";
  return isInference ? target.inferenceKey : target.managementKey;
}

function unauthenticated(protocol: Protocol): string {
  return protocol.startsWith("Connect") ? "unauthenticated" : "16";
}

/** Internal, unknown, data loss, in the words of both. */
function isBug(error: string): boolean {
  return ["internal", "unknown", "data_loss", "13", "2", "15"].includes(error);
}
