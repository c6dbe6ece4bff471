import { KeyKind, KeyScope, LimitReset } from "../../gen/media/account/v1/key_pb.ts";

/** The words of key kinds. */
export const keyKinds = { inference: KeyKind.INFERENCE, management: KeyKind.MANAGEMENT } as const;
/** The words of scopes. */
export const keyScopes = { speech: KeyScope.SPEECH, images: KeyScope.IMAGES } as const;
/** The words of a limit's periods; never is null. */
export const limitResets = {
  daily: LimitReset.DAILY,
  weekly: LimitReset.WEEKLY,
  monthly: LimitReset.MONTHLY,
} as const;

/** Most requests a minute that any operator may let a key make. */
export const maxKeyRatePerMinute = 1_000_000;
/** Longest that a key works on after it was replaced, seconds: 30 days. */
export const maxKeyGraceS = 2_592_000;
/** Which part of the list of keys may be asked for. */
export const keyPage = { maxOffset: 1_000_000, limit: { maximum: 100, default: 100 } } as const;

/** What may stand as an account's own key at a provider: all that can stand in a header as a whole. */
export const providerSecret = {
  maxLength: 4096,
  pattern: String.raw`^[\x21-\x7e]+$`,
  words: "must be visible ASCII characters without blanks",
} as const;
