import type { RequestLimiter } from "../../lib/rate-limit/limiter.ts";

/** Admits every request. */
export const unlimited: RequestLimiter = {
  admit: async () => ({ release: () => undefined }),
  close: async () => undefined,
};
