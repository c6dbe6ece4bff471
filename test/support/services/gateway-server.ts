import { connect } from "node:net";
import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl, Transport } from "@connectrpc/connect";
import { createGateway, type GatewayDependencies, type RunningGateway } from "../../../gateway/app.ts";
import type { GatewayClients } from "../../../gateway/clients.ts";
import { type GatewaySettings, gatewaySettings, readGatewayConfig } from "../../../gateway/config.ts";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind, KeyScope } from "../../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import {
  AudioFormat,
  type SynthesizeResponse,
  SynthesizeResponseSchema,
} from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { UsageService } from "../../../gen/media/usage/v1/usage_service_pb.ts";
import { createLocalTransport, createRpcClient } from "../../../lib/rpc/client.ts";
import { serverInterceptor } from "../../../lib/rpc/interceptors.ts";
import { systemClock } from "../../../lib/runtime/clock.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { createLog, silentLog } from "../../../lib/runtime/log.ts";
import { type AccountHandlers, accountRoutes } from "../../fakes/fake-account.ts";
import { type UsageHandlers, usageRoutes } from "../../fakes/fake-usage.ts";
import { type DestinationHandlers, destinationRoutes } from "./destination-routes.ts";
import { speechRoutes } from "./speech-server.ts";

/** Handlers that play the speech service. */
export type SpeechHandlers = Partial<ServiceImpl<typeof SpeechService>>;

/** Handlers that play the image service. */
export type ImageHandlers = Partial<ServiceImpl<typeof ImageService>>;

/** What a test changes about a gateway. */
export interface GatewayServerOptions {
  handlers?: SpeechHandlers;
  /** Instead of handlers in this process. */
  transport?: Transport;
  imageHandlers?: ImageHandlers;
  /** Instead of image handlers in this process. */
  imageTransport?: Transport;
  usageHandlers?: UsageHandlers;
  accountHandlers?: AccountHandlers;
  destinationHandlers?: DestinationHandlers;
  /** Instead of the clients of what is played in this process. */
  clients?: Partial<GatewayClients>;
  settings?: Partial<GatewaySettings>;
  authenticate?: GatewayDependencies["authenticate"];
  admissions?: GatewayDependencies["admissions"];
  strangers?: GatewayDependencies["strangers"];
  consoleFiles?: GatewayDependencies["consoleFiles"];
  tls?: { cert: Buffer; key: Buffer };
}

/** A gateway that listens on a free port of the loopback interface. */
export interface GatewayServer extends RunningGateway {
  readonly baseUrl: string;
  /** The lines that it logged. */
  readonly logged: readonly Record<string, unknown>[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Keys that the stand-in for authentication knows, and one that it does not. */
export const testKeys = {
  speech: "sk-speech",
  images: "sk-images",
  management: "sk-management",
  expired: "sk-expired",
  disabled: "sk-disabled",
  unknown: "sk-unknown",
  down: "sk-account-is-away",
} as const;

/** Starts a gateway whose services are played by the test. */
export async function startGatewayServer(options: GatewayServerOptions = {}): Promise<GatewayServer> {
  const logged: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
  const settings = gatewaySettings(
    readGatewayConfig({ SERVICE_KEY_FILE: "unused", PUBLIC_URL: "https://media.test" }),
  );
  const gateway = createGateway({
    ...playedClients(options),
    ...options.clients,
    admissions: options.admissions ?? [],
    strangers: options.strangers,
    consoleFiles: options.consoleFiles,
    settings: { ...settings, ...options.settings },
    log: createLog({ name: "gateway", level: "info", destination }),
    clock: systemClock,
  });
  const running = await gateway.listen({ host: "127.0.0.1", port: 0, tls: options.tls });
  const close = (drain = { delayMs: 0, timeoutMs: 0 }) => running.close(drain);
  return {
    port: running.port,
    get draining() {
      return running.draining;
    },
    baseUrl: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${running.port}`,
    logged,
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}

function playedClients(options: GatewayServerOptions): GatewayClients {
  const speech = options.transport ?? createLocalTransport(speechRoutes(options.handlers));
  const image = options.imageTransport ?? createLocalTransport(imageRoutes(options.imageHandlers));
  const account = createLocalTransport(accountRoutes(options.accountHandlers));
  const destination = createLocalTransport(destinationRoutes(options.destinationHandlers));
  return {
    speech: createRpcClient(SpeechService, speech),
    image: createRpcClient(ImageService, image),
    usage: createRpcClient(UsageService, createLocalTransport(usageRoutes(options.usageHandlers))),
    keys: createRpcClient(KeyService, account),
    credits: createRpcClient(CreditService, account),
    providerKeys: createRpcClient(ProviderKeyService, account),
    destinations: createRpcClient(DestinationService, destination),
    consoleLinks: createRpcClient(AccountInternalService, account),
    authenticate: options.authenticate ?? authenticateTestKey,
  };
}

const authenticateTestKey: GatewayDependencies["authenticate"] = async (key) => {
  const principal = (keyKind: KeyKind, scopes: KeyScope[]) =>
    create(PrincipalSchema, { accountId: "account-1", keyHash: "ab".repeat(32), keyKind, scopes });
  switch (key) {
    case testKeys.speech:
      return principal(KeyKind.INFERENCE, [KeyScope.SPEECH]);
    case testKeys.images:
      return principal(KeyKind.INFERENCE, [KeyScope.IMAGES]);
    case testKeys.management:
      return principal(KeyKind.MANAGEMENT, []);
    case testKeys.expired:
      throw new DomainError(ErrorReason.KEY_EXPIRED, "expired");
    case testKeys.disabled:
      throw new DomainError(ErrorReason.KEY_DISABLED, "disabled");
    case testKeys.down:
      throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "keys can't be checked now");
    default:
      throw new DomainError(ErrorReason.KEY_UNKNOWN, "unknown");
  }
};

/** Registers the image service with the given handlers. */
export function imageRoutes(handlers: ImageHandlers = {}) {
  return (router: ConnectRouter) =>
    router.service(ImageService, handlers, { interceptors: [serverInterceptor(silentLog)] });
}

/** A request as JSON; a string or bytes go out as they are. */
export interface SentRequest {
  readonly path: string;
  readonly key: string;
  readonly body: unknown;
}

/** What a request brings besides. */
export interface PostOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request. */
export function post(
  { baseUrl }: Pick<GatewayServer, "baseUrl">,
  { path, key, body }: SentRequest,
  { headers = {}, ...rest }: PostOptions = {},
): Promise<Response> {
  return fetch(baseUrl + path, {
    method: "POST",
    body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    ...rest,
  });
}

/** The text of a request, for a raw connection. */
export function rawRequest({ path, key, body }: SentRequest): string {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: media.test",
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${text}`;
}

/** The path of the speech operation. */
export const speechPath = "/api/v1/audio/speech";

/** The shortest body that is a request. */
export const leastSpeechBody = { input: "Hello.", model: "acme/one" };

/** A speech request with a good key. */
export function postSpeech(
  gateway: Pick<GatewayServer, "baseUrl">,
  body: unknown = leastSpeechBody,
  options?: PostOptions,
): Promise<Response> {
  return post(gateway, { path: speechPath, key: testKeys.speech, body }, options);
}

/** An error's status and reason, once its body is checked to have the shape that every error has. */
export async function errorOf(response: Response): Promise<{ status: number; reason: string }> {
  const { error, ...others } = (await response.json()) as {
    error: { code: number; message: string; metadata: { reason: string } };
  };
  if (Object.keys(others).length > 0 || error.code !== response.status || typeof error.message !== "string") {
    throw new Error(`not the shape of an error: ${JSON.stringify(error)}`);
  }
  return { status: response.status, reason: error.metadata.reason };
}

/** The first frame of an answer. */
export function startedFrame(
  fields: { format?: AudioFormat; ignoredParameters?: string[] } = {},
): SynthesizeResponse {
  const { format = AudioFormat.MP3, ignoredParameters = [] } = fields;
  const value = { generationId: "gen-tts-1", format, sampleRateHz: 24_000, channels: 1, ignoredParameters };
  return create(SynthesizeResponseSchema, { frame: { case: "started", value } });
}

/** The last frame of a whole answer. */
export function finishedFrame(): SynthesizeResponse {
  return create(SynthesizeResponseSchema, { frame: { case: "finished", value: { inputCharacters: 6n } } });
}

/** A frame of the given bytes. */
export function bytesFrame(bytes: Uint8Array): SynthesizeResponse {
  return create(SynthesizeResponseSchema, { frame: { case: "audio", value: bytes } });
}

/** A TCP connection to a gateway, for what no HTTP client would send. */
export class RawConnection {
  readonly #socket;
  connected = false;
  /** All that came so far. */
  received = "";
  /** Whether the gateway has ended or reset the connection. */
  ended = false;
  /** Whether it was a reset. */
  reset = false;

  constructor({ port }: Pick<GatewayServer, "port">) {
    this.#socket = connect({ port, host: "127.0.0.1" });
    this.#socket.setEncoding("latin1");
    this.#socket.on("connect", () => {
      this.connected = true;
    });
    this.#socket.on("data", (text: string) => {
      this.received += text;
    });
    this.#socket.on("end", () => {
      this.ended = true;
    });
    this.#socket.on("error", () => {
      this.ended = true;
      this.reset = true;
    });
  }

  send(text: string): void {
    this.#socket.write(text, "latin1");
  }

  /** Stops taking what comes. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Leaves. */
  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** The text of a request with a good key; `lines` are further headers. */
export function rawSpeechRequest(lines: readonly string[], body = ""): string {
  const head = [
    `POST ${speechPath} HTTP/1.1`,
    "Host: media.test",
    `Authorization: Bearer ${testKeys.speech}`,
  ];
  return `${[...head, "Content-Type: application/json", ...lines].join("\r\n")}\r\n\r\n${body}`;
}
