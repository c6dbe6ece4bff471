import { readdirSync } from "node:fs";
import { create, type DescFile } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { accessTable, checkAccess } from "./access.ts";

const generated = new URL("../../gen/media/", import.meta.url);

async function generatedMethods(): Promise<string[]> {
  const paths = readdirSync(generated, { recursive: true, encoding: "utf8" });
  const modules = await Promise.all(
    paths.filter((path) => path.endsWith("_pb.ts")).map((path) => import(new URL(path, generated).href)),
  );
  const files = modules.flatMap((module: Record<string, unknown>) =>
    Object.entries(module).flatMap(([name, value]) => (name.startsWith("file_") ? [value as DescFile] : [])),
  );
  return files.flatMap(({ services }) =>
    services.flatMap(({ typeName, methods }) => methods.map(({ localName }) => `${typeName}/${localName}`)),
  );
}

test("the access table names every RPC of this system and nothing else", async () => {
  const methods = await generatedMethods();
  const rows = [...accessTable].flatMap(([service, rules]) =>
    [...rules.keys()].map((method) => `${service}/${method}`),
  );
  expect(methods.length).toBeGreaterThan(40);
  expect(rows.sort()).toEqual(methods.sort());
});

const management = create(PrincipalSchema, { keyKind: KeyKind.MANAGEMENT });
const speech = create(PrincipalSchema, { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] });
const nowMs = Date.UTC(2030, 0, 1);

test("an RPC without a row is closed to all", () => {
  for (const caller of [
    { kind: "key", principal: management },
    { kind: "process", issuer: "gateway" },
    { kind: "operator", subject: "ada" },
  ] as const) {
    expect(() => checkAccess(Health.method.check, caller, nowMs)).toThrow(
      expect.objectContaining({ reason: ErrorReason.CALLER_NOT_ALLOWED }),
    );
  }
});

test("a key that has expired since it was looked up is refused, whoever brings it", () => {
  const principal = create(PrincipalSchema, { ...management, expiresAt: timestampFromMs(nowMs) });
  const { listKeys } = KeyService.method;
  for (const caller of [
    { kind: "key", principal },
    { kind: "process", issuer: "gateway", principal },
  ] as const) {
    expect(() => checkAccess(listKeys, caller, nowMs - 1)).not.toThrow();
    expect(() => checkAccess(listKeys, caller, nowMs)).toThrow(
      expect.objectContaining({ reason: ErrorReason.KEY_EXPIRED }),
    );
  }
});

test("who acts for a caller may do what the caller may, and no more", () => {
  const { listKeys, getCurrentKey } = KeyService.method;
  const gateway = { kind: "process", issuer: "gateway" } as const;
  expect(() => checkAccess(getCurrentKey, { ...gateway, principal: speech }, nowMs)).not.toThrow();
  expect(() => checkAccess(listKeys, { ...gateway, principal: speech }, nowMs)).toThrow(
    expect.objectContaining({ reason: ErrorReason.MANAGEMENT_KEY_REQUIRED }),
  );
  for (const caller of [gateway, { kind: "process", issuer: "speech", principal: management } as const]) {
    expect(() => checkAccess(listKeys, caller, nowMs)).toThrow(
      expect.objectContaining({ reason: ErrorReason.CALLER_NOT_ALLOWED }),
    );
  }
});
