import { intVar } from "../runtime/config.ts";

/** The variables of paid requests; standalone reads them too. */
export const paidSpec = {
  /** Longest wait of an answer's end for its event to be safe. */
  SETTLE_WAIT_MS: intVar(0, 60_000)({ default: 500 }),
  /** What a request costs that an own provider key serves, percent of its list price. */
  BYOK_FEE_PERCENT: intVar(0, 100)({ default: 5 }),
} as const;
