import type { RequestLimiter } from "../../lib/rate-limit/limiter.ts";

/** Admits every request. */
export const unlimited: RequestLimiter = {
  admit: async () => ({ id: "any", release: () => undefined }),
  enter: async () => ({ id: "any", release: () => undefined }),
  close: async () => undefined,
};
