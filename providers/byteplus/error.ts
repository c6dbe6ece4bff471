import type { ProviderErrorKind } from "../contract.ts";
import type { ErrorMeanings } from "../upstream/failure.ts";

const codes: Readonly<Partial<Record<ProviderErrorKind, readonly string[]>>> = {
  content_policy: [
    ...["InputText", "InputImage", "OutputImage", ""].flatMap((part) => [
      `${part}SensitiveContentDetected`,
      `${part}SensitiveContentDetected.PolicyViolation`,
      `${part}SensitiveContentDetected.PrivacyInformation`,
      `${part}RiskDetection`,
    ]),
    "SensitiveContentDetected.SevereViolation",
    "SensitiveContentDetected.Violence",
    "ContentSecurityDetectionError",
  ],
  // The account's money, the models that it has opened, and the limits that it has set itself.
  credentials: [
    "AuthenticationError",
    "AccessDenied",
    "OperationDenied.ServiceNotOpen",
    "OperationDenied.ServiceOverdue",
    "AccountOverdueError",
    "InvalidAccountStatus",
    "ModelNotOpen",
    "InvalidEndpointOrModel.ModelIDAccessDisabled",
    "QuotaExceeded",
    "SetLimitExceeded",
  ],
  overloaded: ["ServerOverloaded", "RequestBurstTooFast"],
  // Within a stream there is no status to go by.
  invalid_request: ["BadRequest", "InvalidParameter", "MissingParameter"],
};

/** ModelArk's codes that say more than their status (docs.byteplus.com, "Error codes"). */
export const meanings: ErrorMeanings = new Map(
  Object.entries(codes).flatMap(([kind, names]) =>
    names.map((name) => [name.toLowerCase(), kind as ProviderErrorKind] as const),
  ),
);
