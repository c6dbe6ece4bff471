import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "../../gen/health/v1/health_pb.ts";
import type { NodeRequest, NodeResponse } from "./port/port-listener.ts";
import type { RegisterRoutes } from "./registered-method.ts";

/** Says what keeps a process from serving; an empty list means ready. Must answer quickly. */
export type Readiness = () => Promise<readonly string[]>;

/** Name that grpc.health.v1 answers liveness for; the empty name and service names answer readiness. */
export const livenessService = "liveness";

const watchIntervalMs = 1000;
/** Anybody may watch; beyond so many at once nobody who runs this does. */
const maxWatches = 256;

/** Whether a process lives and may be sent work, over HTTP (`/healthz`, `/readyz`) and grpc.health.v1. */
export class ProcessHealth {
  readonly #readiness: Readiness;
  readonly #drain = new AbortController();
  #asking: Promise<readonly string[]> | undefined;
  #watches = 0;

  constructor(readiness: Readiness) {
    this.#readiness = readiness;
  }

  /** From now on the process is not ready, whatever else holds. */
  startDraining(): void {
    this.#drain.abort();
  }

  get draining(): boolean {
    return this.#drain.signal.aborted;
  }

  /** What keeps the process from serving. A readiness check that throws is such a thing itself. */
  async problems(): Promise<readonly string[]> {
    if (this.draining) return ["draining"];
    // Anybody may ask, and it may cost a query: who comes while one is asked for gets its answer.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<readonly string[]> {
    try {
      return await this.#readiness();
    } catch {
      return ["readiness check failed"];
    }
  }

  /** Answers `/healthz` (the process lives) and `/readyz` (503 with the problems when not ready); false for the rest. */
  answer(request: NodeRequest, response: NodeResponse): boolean {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    if (request.url === "/healthz") {
      writeJson(response, 200, { status: "ok" });
      return true;
    }
    if (request.url !== "/readyz") return false;
    void this.problems().then((problems) => {
      const ready = problems.length === 0;
      writeJson(response, ready ? 200 : 503, ready ? { status: "ready" } : { status: "not ready", problems });
    });
    return true;
  }

  /** grpc.health.v1 for the named services. A watch ends once it has said that the process drains. */
  routes(serviceNames: readonly string[]): RegisterRoutes {
    const known = new Set(["", livenessService, ...serviceNames]);
    const draining = this.#drain.signal;
    const readiness = async () =>
      (await this.problems()).length === 0 ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    const status = async (service: string) => {
      if (!known.has(service)) return undefined;
      return service === livenessService ? ServingStatus.SERVING : readiness();
    };
    return (router) =>
      router.service(Health, {
        async check({ service }) {
          const now = await status(service);
          if (now === undefined) throw new ConnectError("unknown service", Code.NotFound);
          return { status: now };
        },
        async list() {
          const ready = await readiness();
          const statuses = [...known].map((name) => {
            return [name, { status: name === livenessService ? ServingStatus.SERVING : ready }] as const;
          });
          return { statuses: Object.fromEntries(statuses) };
        },
        watch: ({ service }, { signal }) =>
          this.#watch(() => status(service), AbortSignal.any([signal, draining])),
      });
  }

  async *#watch(status: () => Promise<ServingStatus | undefined>, ended: AbortSignal) {
    if (this.#watches >= maxWatches) throw new ConnectError("too many watch", Code.ResourceExhausted);
    if (!ended.aborted) {
      this.#watches += 1;
      ended.addEventListener("abort", () => this.#watches--, { once: true });
    }
    let last: ServingStatus | undefined;
    for (;;) {
      const ending = ended.aborted;
      const now = (await status()) ?? ServingStatus.SERVICE_UNKNOWN;
      if (now !== last) yield { status: now };
      if (ending) return;
      last = now;
      await delay(watchIntervalMs, undefined, { signal: ended, ref: false }).catch(() => undefined);
    }
  }
}

function writeJson(response: NodeResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(`${JSON.stringify(body)}\n`);
}
