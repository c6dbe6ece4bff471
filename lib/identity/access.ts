import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { Caller } from "./caller.ts";
import type { Issuer } from "./issuer.ts";

/** Who may call an RPC. */
export type AccessRule =
  /**
   * People's programs with such a key, a process that acts for one, and operators who only read for an account; `issuers`
   * in their own name, too.
   */
  | {
      readonly open: "callers";
      readonly key: "inference" | "management" | "any";
      readonly scope?: KeyScope;
      readonly issuers?: readonly Issuer[];
    }
  /** Processes of this system, in their own name. */
  | { readonly open: "processes"; readonly issuers: readonly Issuer[] }
  /** Operators with an admin token. */
  | { readonly open: "operators" };

/** The processes that may act for a caller. */
const actingIssuers: readonly Issuer[] = ["gateway"];

const anyKey: AccessRule = { open: "callers", key: "any" };
/** What the gateway's own document, which needs no key, shows as well. */
const anyKeyOrGateway: AccessRule = { ...anyKey, issuers: ["gateway", "operator"] };
/** What operators ask for without an account in mind as well. */
const anyKeyOrOperator: AccessRule = { ...anyKey, issuers: ["operator"] };
const managementKey: AccessRule = { open: "callers", key: "management" };
const inferenceKey = (scope: KeyScope): AccessRule => ({ open: "callers", key: "inference", scope });
const processes = (...issuers: readonly Issuer[]): AccessRule => ({ open: "processes", issuers });
const operators: AccessRule = { open: "operators" };

type Rules<S extends DescService> = { readonly [M in keyof S["method"]]: AccessRule };

function rulesOf<S extends DescService>(service: S, rules: Rules<S>) {
  return [service.typeName, new Map<string, AccessRule>(Object.entries(rules))] as const;
}

function forOperators(service: DescService) {
  return [service.typeName, new Map(service.methods.map(({ localName }) => [localName, operators]))] as const;
}

/** Who may call each RPC of this system, by service and method name; what stands not here is closed to all. */
export const accessTable: ReadonlyMap<string, ReadonlyMap<string, AccessRule>> = new Map([
  rulesOf(SpeechService, {
    synthesize: inferenceKey(KeyScope.SPEECH),
    listSpeechModels: anyKeyOrGateway,
    listSpeechProviders: anyKeyOrOperator,
  }),
  rulesOf(ImageService, {
    generate: inferenceKey(KeyScope.IMAGES),
    listImageModels: anyKeyOrGateway,
    listImageProviders: anyKeyOrOperator,
  }),
  forOperators(SpeechAdminService),
  forOperators(ImageAdminService),
  rulesOf(KeyService, {
    listKeys: managementKey,
    createKey: managementKey,
    getKey: managementKey,
    getCurrentKey: anyKey,
    updateKey: managementKey,
    deleteKey: managementKey,
    rotateKey: managementKey,
  }),
  rulesOf(CreditService, { getCredits: managementKey, listLedgerEntries: managementKey }),
  rulesOf(ProviderKeyService, {
    listProviderKeys: managementKey,
    createProviderKey: managementKey,
    getProviderKey: managementKey,
    updateProviderKey: managementKey,
    deleteProviderKey: managementKey,
  }),
  rulesOf(AccountInternalService, {
    authenticate: processes("gateway", "speech", "image", "usage", "destination"),
    reserve: processes("speech", "image"),
    settle: processes("speech", "image"),
    release: processes("speech", "image"),
    resolveProviderKey: processes("speech", "image"),
    redeemConsoleLink: processes("gateway"),
    recordProviderTest: processes("speech", "image"),
    recordDestinationAction: processes("destination"),
  }),
  forOperators(AccountAdminService),
  rulesOf(UsageService, {
    listActivity: managementKey,
    listGenerations: managementKey,
    listActivitySeries: managementKey,
    getGeneration: anyKey,
  }),
  forOperators(UsageAdminService),
  rulesOf(DestinationService, {
    listDestinations: managementKey,
    createDestination: managementKey,
    getDestination: managementKey,
    updateDestination: managementKey,
    deleteDestination: managementKey,
    testDestination: managementKey,
    listDeliveries: managementKey,
    resumeDestination: managementKey,
  }),
  forOperators(DestinationAdminService),
]);

/**
 * Lets a caller pass who may call the method. Throws `key_missing`, `key_expired`, `inference_key_required`,
 * `management_key_required`, `scope_missing` or `caller_not_allowed`.
 */
export function checkAccess(method: DescMethod, caller: Caller, nowMs: number): void {
  if (caller.kind === "anonymous") {
    throw new DomainError(ErrorReason.KEY_MISSING, "this call needs an API key or a token");
  }
  const rule = accessTable.get(method.parent.typeName)?.get(method.localName);
  switch (rule?.open) {
    case "callers":
      if (isNamed(caller, rule.issuers ?? []) && caller.principal === undefined) return;
      checkPrincipal(rule, principalFor(caller, method), nowMs);
      return;
    case "processes":
      if (isNamed(caller, rule.issuers)) return;
      throw notAllowed();
    case "operators":
      if (caller.kind === "operator") return;
      throw notAllowed();
    default:
      throw notAllowed();
  }
}

/** Whether an RPC generates: those are limited by key, and by address where none is known. */
export function isForGenerating(method: DescMethod): boolean {
  const rule = accessTable.get(method.parent.typeName)?.get(method.localName);
  return rule?.open === "callers" && rule.scope !== undefined;
}

function isNamed(
  caller: Caller,
  issuers: readonly Issuer[],
): caller is Extract<Caller, { kind: "process" | "operator" }> {
  if (caller.kind === "operator") return issuers.includes("operator");
  return caller.kind === "process" && issuers.some((issuer) => issuer === caller.issuer);
}

/** Operators change nothing in an account's name: what they change goes into the audit. */
function principalFor(caller: Caller, { idempotency }: DescMethod): Principal {
  if (caller.kind === "key") return caller.principal;
  const mayAct =
    caller.kind === "operator"
      ? idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
      : isNamed(caller, actingIssuers);
  if (!mayAct || caller.kind === "anonymous" || caller.principal === undefined) throw notAllowed();
  return caller.principal;
}

/**
 * Whether a key may do what needs a key of this kind and scope. Throws `key_expired`, `inference_key_required`,
 * `management_key_required` or `scope_missing`.
 */
export function checkPrincipal(
  { key, scope }: { key: "inference" | "management" | "any"; scope?: KeyScope },
  principal: Principal,
  nowMs: number,
): void {
  if (isExpired(principal, nowMs)) throw new DomainError(ErrorReason.KEY_EXPIRED, "the key has expired");
  if (key === "inference" && principal.keyKind !== KeyKind.INFERENCE) {
    throw new DomainError(ErrorReason.INFERENCE_KEY_REQUIRED, "this call needs an inference key");
  }
  if (key === "management" && principal.keyKind !== KeyKind.MANAGEMENT) {
    throw new DomainError(ErrorReason.MANAGEMENT_KEY_REQUIRED, "this call needs a management key");
  }
  if (scope !== undefined && !principal.scopes.includes(scope)) {
    const name = scope === KeyScope.SPEECH ? "speech" : "images";
    throw new DomainError(ErrorReason.SCOPE_MISSING, `the key lacks the scope ${name}`);
  }
}

/** Whether the key that a principal came with has expired by then. */
export function isExpired({ expiresAt }: Principal, nowMs: number): boolean {
  return expiresAt !== undefined && Number(expiresAt.seconds) * 1000 + expiresAt.nanos / 1e6 <= nowMs;
}

function notAllowed(): DomainError {
  return new DomainError(ErrorReason.CALLER_NOT_ALLOWED, "this call is not open to this caller");
}
