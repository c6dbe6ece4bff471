import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import type { Audience, Issuer } from "./issuer.ts";
import { generateServiceKeys, importServiceKey, type PrivateServiceJwk } from "./service-key.ts";
import type { ServiceKeySet, VerificationKey } from "./service-key-set.ts";
import { createTokenSigner, createTokenVerifier, type TokenVerifier } from "./service-token.ts";

const issuers = ["gateway", "speech", "operator"] as const satisfies Issuer[];
const principal = create(PrincipalSchema, {
  accountId: "5f0f5c3e-6a0c-4b7c-9d4e-000000000001",
  keyHash: "a".repeat(64),
  keyName: "Schlüssel",
  keyKind: KeyKind.INFERENCE,
  scopes: [KeyScope.SPEECH],
  expiresAt: timestampFromMs(Date.UTC(2031, 0, 1)),
});

let jwks: Record<string, PrivateServiceJwk>;
let keySet: { -readonly [M in keyof ServiceKeySet]: ServiceKeySet[M] } & {
  keys: Map<string, VerificationKey>;
};
let clock: ManualClock;
let verify: TokenVerifier;

beforeAll(async () => {
  const { privateKeys } = await generateServiceKeys(issuers);
  jwks = Object.fromEntries(privateKeys.map((key) => [key.iss, key]));
});

beforeEach(async () => {
  const keys = new Map<string, VerificationKey>();
  for (const { kid, kty = "", crv = "", x = "", iss } of Object.values(jwks)) {
    keys.set(kid, { issuer: iss, publicKey: (await importJWK({ kty, crv, x }, "EdDSA")) as CryptoKey });
  }
  keySet = { keys, version: 1, find: async (kid) => keys.get(kid), touch() {} };
  clock = new ManualClock();
  verify = createTokenVerifier(keySet, clock);
});

async function signer(issuer: (typeof issuers)[number], subject?: string) {
  return createTokenSigner(await importServiceKey(jwkOf(issuer)), subject, clock);
}

function jwkOf(issuer: (typeof issuers)[number]): PrivateServiceJwk {
  const jwk = jwks[issuer];
  if (jwk === undefined) throw new Error(issuer);
  return jwk;
}

describe("a token", () => {
  test("names its issuer and whom it acts for", async () => {
    const token = await (await signer("gateway")).sign("speech", principal);
    expect(await verify(token, "speech")).toEqual({ issuer: "gateway", subject: "", principal });
  });

  test("names no one unless it acts for someone", async () => {
    const token = await (await signer("speech")).sign("account");
    expect(await verify(token, "account")).toEqual({ issuer: "speech", subject: "", principal: undefined });
  });

  test("of an operator names them", async () => {
    const token = await (await signer("operator", "ada")).sign("account");
    expect(await verify(token, "account")).toMatchObject({ issuer: "operator", subject: "ada" });
  });

  test("of an operator without a name is refused", async () => {
    const token = await (await signer("operator")).sign("account");
    await expect(verify(token, "account")).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  });

  test("is refused by every service but its own, remembered or not", async () => {
    const token = await (await signer("gateway")).sign("speech", principal);
    const refused = { reason: ErrorReason.KEY_UNKNOWN };
    await expect(verify(token, "image")).rejects.toMatchObject(refused);
    await verify(token, "speech");
    await expect(verify(token, "image")).rejects.toMatchObject(refused);
  });

  test("ends with its lifetime, remembered or not", async () => {
    const remembered = await (await signer("gateway")).sign("speech");
    await verify(remembered, "speech");
    clock.advance(119_000);
    await verify(remembered, "speech");
    clock.advance(12_000);
    await expect(verify(remembered, "speech")).rejects.toMatchObject({ reason: ErrorReason.KEY_EXPIRED });
    const fresh = createTokenVerifier(keySet, clock);
    await expect(fresh(remembered, "speech")).rejects.toMatchObject({ reason: ErrorReason.KEY_EXPIRED });
  });

  test("is evicted when its key leaves the set", async () => {
    const token = await (await signer("gateway")).sign("speech");
    await verify(token, "speech");
    keySet.keys.delete(jwkOf("gateway").kid);
    keySet.version += 1;
    await expect(verify(token, "speech")).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  });
});

describe("a signer", () => {
  test("signs once for each service and principal while most of the token's life is left", async () => {
    const own = await signer("gateway");
    const first = await own.sign("speech", principal);
    clock.advance(89_000);
    expect(await own.sign("speech", create(PrincipalSchema, principal))).toBe(first);
    expect(await own.sign("image", principal)).not.toBe(first);
    expect(await own.sign("speech", create(PrincipalSchema, { ...principal, keyName: "b" }))).not.toBe(first);
    clock.advance(2000);
    const second = await own.sign("speech", principal);
    expect(second).not.toBe(first);
    await verify(second, "speech");
  });
});

describe("a forged token is refused", () => {
  const claims = (iss: string, aud: Audience) =>
    new SignJWT({})
      .setIssuer(iss)
      .setAudience(aud)
      .setIssuedAt(nowS())
      .setExpirationTime(nowS() + 60);
  const nowS = () => Math.floor(clock.nowMs() / 1000);

  const forgeries: Record<string, () => Promise<string>> = {
    "signed with another issuer's key": async () => {
      const { privateKey, keyId } = await importServiceKey(jwkOf("speech"));
      const token = claims("gateway", "account").setProtectedHeader({ alg: "EdDSA", kid: keyId });
      return token.sign(privateKey);
    },
    "signed with another issuer's key under the issuer's key id": async () => {
      const { privateKey } = await importServiceKey(jwkOf("speech"));
      const { kid } = jwkOf("gateway");
      return claims("gateway", "account").setProtectedHeader({ alg: "EdDSA", kid }).sign(privateKey);
    },
    "signed with a key of nobody": async () => {
      const { privateKey } = await generateKeyPair("EdDSA");
      return claims("gateway", "account").setProtectedHeader({ alg: "EdDSA", kid: "x" }).sign(privateKey);
    },
    "signed with the public key as a shared secret": async () => {
      const { kid, x = "" } = jwkOf("gateway");
      const token = claims("gateway", "account").setProtectedHeader({ alg: "HS256", kid });
      return token.sign(Buffer.from(x, "base64url"));
    },
    "not signed": async () => {
      const token = new UnsecuredJWT({}).setIssuer("gateway").setAudience("account");
      const [, payload] = token
        .setIssuedAt(nowS())
        .setExpirationTime(nowS() + 60)
        .encode()
        .split(".");
      const header = JSON.stringify({ alg: "none", kid: jwkOf("gateway").kid });
      return `${Buffer.from(header).toString("base64url")}.${payload}.`;
    },
    "that brings its own key": async () => {
      const { privateKey, publicKey } = await generateKeyPair("EdDSA");
      const header = { alg: "EdDSA", kid: jwkOf("gateway").kid, jwk: await exportJWK(publicKey) };
      return claims("gateway", "account").setProtectedHeader(header).sign(privateKey);
    },
    "with changed claims": async () => {
      const token = await (await signer("gateway")).sign("account");
      const [header, payload = "", signature] = token.split(".");
      const changed = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
      const text = JSON.stringify({ ...changed, principal: "AAAA" });
      return `${header}.${Buffer.from(text).toString("base64url")}.${signature}`;
    },
    "made to live long": async () => {
      const { privateKey, keyId } = await importServiceKey(jwkOf("gateway"));
      const token = claims("gateway", "account").setIssuedAt(nowS() - 600);
      return token.setProtectedHeader({ alg: "EdDSA", kid: keyId }).sign(privateKey);
    },
    "without an end": async () => {
      const { privateKey, keyId } = await importServiceKey(jwkOf("gateway"));
      const token = new SignJWT({}).setIssuer("gateway").setAudience("account").setIssuedAt(nowS());
      return token.setProtectedHeader({ alg: "EdDSA", kid: keyId }).sign(privateKey);
    },
    "made in the future": async () => {
      const { privateKey, keyId } = await importServiceKey(jwkOf("gateway"));
      const token = claims("gateway", "account").setIssuedAt(nowS() + 60);
      return token.setProtectedHeader({ alg: "EdDSA", kid: keyId }).sign(privateKey);
    },
    "for someone who is no principal": async () => {
      const { privateKey, keyId } = await importServiceKey(jwkOf("gateway"));
      const token = new SignJWT({ principal: 7 }).setIssuer("gateway").setAudience("account");
      token.setIssuedAt(nowS()).setExpirationTime(nowS() + 60);
      return token.setProtectedHeader({ alg: "EdDSA", kid: keyId }).sign(privateKey);
    },
    "that is none": async () => "a.b.c",
    "that is too long": async () => `${"a".repeat(9000)}.b.c`,
  };

  test.for(Object.keys(forgeries))("%s", async (name) => {
    const token = (await forgeries[name]?.()) ?? "";
    const failure = await verify(token, "account").catch((thrown: unknown) => thrown);
    expect([ErrorReason.KEY_UNKNOWN, ErrorReason.KEY_EXPIRED]).toContain(
      (failure as { reason?: number }).reason,
    );
  });
});
