import findMyWay, { type HTTPMethod } from "find-my-way";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import type { Strangers } from "../lib/identity/stranger.ts";
import { ByteBudget } from "../lib/limits/byte-budget.ts";
import { openPort } from "../lib/rpc/port/open-port.ts";
import { requestIdFrom, requestIdHeader } from "../lib/rpc/request-context.ts";
import type { Clock } from "../lib/runtime/clock.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { LoopDelay } from "../lib/runtime/loop-delay.ts";
import { silentTracer, type Tracer } from "../lib/runtime/span.ts";
import type { Metrics } from "../lib/telemetry/metrics.ts";
import { activityRoute } from "./activity/route.ts";
import { activitySeriesRoute } from "./activity/series-route.ts";
import { byokRoutes } from "./byok/route.ts";
import type { GatewayClients } from "./clients.ts";
import type { GatewaySettings } from "./config.ts";
import type { ConsoleFile } from "./console/assets.ts";
import { consoleRoutes } from "./console/route.ts";
import { consoleSessionRoute } from "./console/session-route.ts";
import { ledgerRoute } from "./credits/ledger.ts";
import { creditsRoute } from "./credits/route.ts";
import { destinationRoutes } from "./destinations/route.ts";
import { createExampleModels } from "./docs/example-models.ts";
import { openApiRoute } from "./docs/openapi-route.ts";
import { rootRoutes } from "./docs/root-route.ts";
import { docsRoutes } from "./docs/route.ts";
import { generationListRoute } from "./generation/list-route.ts";
import { generationRoute } from "./generation/route.ts";
import { sendError } from "./http/answer.ts";
import { headerText, identify, requireAccess } from "./http/auth.ts";
import { answerCors } from "./http/cors.ts";
import { toErrorAnswer } from "./http/error-body.ts";
import { Exchange } from "./http/exchange.ts";
import {
  type HttpListener,
  type HttpListenerOptions,
  listenHttp,
  maxHeaderBytes,
  type RequestFault,
} from "./http/http-listener.ts";
import type { Admission, Route } from "./http/route.ts";
import { beginRequestSpan, logExchange } from "./http/telemetry/request-log.ts";
import { measureRequests } from "./http/telemetry/request-metrics.ts";
import { imageGenerationsRoutes } from "./images/generations/route.ts";
import { imagesRoute } from "./images/route.ts";
import { keyRoutes } from "./keys/route.ts";
import { modelRoutes } from "./models/route.ts";
import { audioSpeechRoute } from "./speech/route.ts";
import { voicesRoute } from "./speech/voices-route.ts";

/** What a gateway is made of: the services, who keys speak for, and what follows. */
export interface GatewayDependencies extends GatewayClients {
  /** Run in order for every route that needs a key, once the key may use it and before its body is read. */
  admissions?: readonly Admission[];
  /** Counts who comes without a good key; nobody unless given. */
  strangers?: Strangers | undefined;
  settings: GatewaySettings;
  /** The page at `/`; none unless given. */
  consoleFiles?: readonly ConsoleFile[] | undefined;
  log: Log;
  clock: Clock;
  metrics?: Metrics | undefined;
  /** Notified of the requests that run. */
  loopDelay?: LoopDelay | undefined;
  /** Records nothing unless given. */
  tracer?: Tracer;
}

/** A gateway that serves. */
export type RunningGateway = HttpListener;

/** The REST interface over the services it is given. */
export interface Gateway {
  /** Opens the port. Throws StartError when it can't be had. */
  listen(options: Pick<HttpListenerOptions, "host" | "port" | "tls">): Promise<RunningGateway>;
}

/** The longest bodies, bytes: all fields at their longest, with what is not ASCII escaped. Images: as configured. */
const maxBodyBytes = {
  speech: 1536 << 10,
  keys: 32 << 10,
  providerKeys: 64 << 10,
  destinations: 256 << 10,
  consoleSession: 4 << 10,
};

/** Makes the gateway; nothing is opened yet. */
export function createGateway(dependencies: GatewayDependencies): Gateway {
  const { settings, log, clock } = dependencies;
  const requestMetrics = measureRequests(dependencies.metrics);
  return {
    async listen({ host, port, tls }) {
      let listener: HttpListener | undefined;
      const isDraining = () => listener?.draining ?? true;
      const route = createRouter(dependencies, isDraining);
      const options: Omit<HttpListenerOptions, "host"> = {
        port,
        tls,
        headersTimeoutMs: settings.bodyTimeoutMs,
        handle(request, response, awaitsContinue) {
          const requestId = requestIdFrom(headerText(request.headers[requestIdHeader]));
          const exchange = new Exchange(request, response, requestId, clock);
          exchange.awaitsContinue = awaitsContinue;
          response.setHeader(requestIdHeader, requestId);
          requestMetrics?.began();
          dependencies.loopDelay?.during(response);
          response.once("close", () => {
            const nowMs = clock.monotonicMs();
            logExchange(log, exchange, nowMs);
            requestMetrics?.ended(exchange, nowMs);
          });
          if (!answerCors(settings.corsOrigins, request, response)) route(exchange);
        },
        malformed: (fault) => malformedAnswer(fault, settings.creditsUrl),
      };
      listener = await openPort({ variable: "PORT", host, port }, (address) =>
        listenHttp({ ...options, host: address }),
      );
      return listener;
    },
  };
}

/** Finds the route of each request and runs it; what has none is answered 404. */
function createRouter(
  dependencies: GatewayDependencies,
  isDraining: () => boolean,
): (exchange: Exchange) => void {
  const router = findMyWay();
  for (const route of [...rootRoutes(isDraining), ...routesOf(dependencies)]) {
    const methods: HTTPMethod[] = route.method === "GET" ? ["GET", "HEAD"] : [route.method];
    router.on(methods, route.path, () => {}, route);
  }
  return (exchange) => {
    const { method = "", url = "" } = exchange.request;
    const found = router.find(method as HTTPMethod, url);
    const route: Runnable = found?.store ?? unknownRoute;
    exchange.parameters = (found?.params ?? {}) as Exchange["parameters"];
    void runRoute(route, exchange, dependencies);
  };
}

/** The routes below `/api/v1`, but for the one of their document. */
export function apiRoutes(dependencies: GatewayDependencies): readonly Route[] {
  const { speech, image, usage, settings } = dependencies;
  const { bodyTimeoutMs: timeoutMs } = settings;
  const budget = new ByteBudget({
    maxBytes: settings.maxInflightBodyBytes,
    maxShareBytes: settings.maxBodyBytes,
  });
  /** A route's dependencies, with what bounds its bodies. */
  const withBodies = (mostBytes: number) => {
    const maxBytes = Math.min(settings.maxBodyBytes, mostBytes);
    return { ...dependencies, ...settings, bodyLimits: { maxBytes, timeoutMs, budget } };
  };
  return [
    audioSpeechRoute(withBodies(maxBodyBytes.speech)),
    imagesRoute(withBodies(settings.maxBodyBytes)),
    ...imageGenerationsRoutes(withBodies(settings.maxBodyBytes)),
    ...modelRoutes({ speech, image }),
    voicesRoute({ speech }),
    activityRoute({ usage }),
    activitySeriesRoute({ usage }),
    generationRoute({ usage }),
    generationListRoute({ usage }),
    ...keyRoutes(withBodies(maxBodyBytes.keys)),
    creditsRoute(dependencies),
    ledgerRoute(dependencies),
    ...byokRoutes(withBodies(maxBodyBytes.providerKeys)),
    ...destinationRoutes(withBodies(maxBodyBytes.destinations)),
    ...(settings.hasConsole ? [consoleSessionRoute(withBodies(maxBodyBytes.consoleSession))] : []),
  ];
}

function routesOf(dependencies: GatewayDependencies): readonly Route[] {
  const { speech, image, settings, clock } = dependencies;
  const routes = apiRoutes(dependencies);
  return [
    ...consoleRoutes(dependencies.consoleFiles ?? []),
    ...docsRoutes(),
    ...routes,
    openApiRoute(routes, settings, createExampleModels({ speech, image, clock })),
  ];
}

type Runnable = Pick<Route, "operation" | "path" | "access" | "handle">;

const unknownRoute: Runnable = {
  path: "",
  operation: "unrouted",
  access: "open",
  handle: async () => {
    throw new DomainError(ErrorReason.ROUTE_UNKNOWN, "no such route");
  },
};

/** The order of checks up to the body; each route goes on from there. */
async function runRoute(
  route: Runnable,
  exchange: Exchange,
  { authenticate, strangers, admissions = [], settings, log, tracer = silentTracer }: GatewayDependencies,
): Promise<void> {
  exchange.route = route.path;
  exchange.operation = route.operation;
  exchange.span = beginRequestSpan(tracer, exchange);
  try {
    if (route.access !== "open") {
      exchange.principal = await identify(exchange, authenticate, strangers);
      requireAccess(route.access, exchange.principal);
      for (const admit of admissions) await admit(exchange);
    }
    await route.handle(exchange);
  } catch (thrown) {
    const error = DomainError.from(thrown);
    if (error.reason === ErrorReason.INTERNAL) {
      log.error({ err: error, request_id: exchange.requestId, ...exchange.span.logFields }, "request failed");
    }
    await sendError(exchange, error, settings.creditsUrl);
  }
}

const faultMessages: Readonly<Record<RequestFault, string>> = {
  malformed: "must be an HTTP/1.1 request",
  headers_too_large: `the URL and the headers must not be longer than ${maxHeaderBytes} bytes together`,
  headers_too_slow: "the headers must arrive sooner",
};

function malformedAnswer(fault: RequestFault, creditsUrl: string) {
  const error = DomainError.invalid([{ path: "", message: faultMessages[fault] }]);
  const { body, headers } = toErrorAnswer(error, "unrouted", creditsUrl);
  return {
    headers: { ...headers, "content-type": "application/json", [requestIdHeader]: requestIdFrom(undefined) },
    body: JSON.stringify(body),
  };
}
