import { Code } from "@connectrpc/connect";
import type { OnCallEnd } from "../rpc/interceptors.ts";
import { type Metrics, requestSeconds } from "./metrics.ts";

/** How long RPCs took and how they ended, for `serverInterceptor`; undefined without metrics. */
export function measureCalls(metrics: Metrics | undefined): OnCallEnd | undefined {
  if (metrics === undefined) return undefined;
  const duration = metrics.histogram(
    "rpc_server_call_duration_seconds",
    "How long calls took, their streams included, by RPC and Connect code, seconds.",
    requestSeconds,
  );
  return ({ rpc, code, durationMs }) =>
    duration.record(durationMs / 1000, { rpc_method: rpc, rpc_response_status_code: wordOfCode(code) });
}

/** A code as the protocol writes it, `not_found`; `ok` without one. */
function wordOfCode(code: Code | undefined): string {
  if (code === undefined) return "ok";
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
