import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import { issuers } from "../../../lib/identity/issuer.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../upstreams/openai/openai.ts";
import type { Receiver } from "../../upstreams/receivers/receiver.ts";
import { startWebhookReceiver } from "../../upstreams/receivers/webhook-receiver.ts";
import { type StandIn, startStandIn } from "../../upstreams/stand-in/stand-in-server.ts";
import { type KafkaBroker, startKafkaBroker } from "../kafka/kafka-broker.ts";
import { kafkaUsers } from "../kafka/kafka-properties.ts";
import { startTraceReceiver, type TraceReceiver } from "../trace-receiver.ts";
import { Canaries } from "./canaries.ts";
import { type FlowStack, startFlowStack } from "./speech-flow.ts";
import { openAiEnv } from "./standalone.ts";

/** The whole product as processes, with every secret known and watched for, and everything that it tells others kept. */
export interface CanaryFlow extends AsyncDisposable, FlowStack {
  readonly canaries: Canaries;
  readonly broker: KafkaBroker;
  readonly collector: TraceReceiver;
  readonly upstream: OpenAiUpstream;
  /** Serves whatever is asked for, as an image. */
  readonly pictures: StandIn;
  /** Takes signed webhooks. */
  readonly hook: Receiver;
  readonly secrets: CanarySecrets;
}

/** What is planted by name, as far as tests send it themselves. */
export interface CanarySecrets {
  readonly prompt: string;
  readonly vendorKey: string;
  readonly ownVendorKey: string;
  readonly hookSecret: string;
  readonly hookHeader: string;
  readonly hookUrlToken: string;
  readonly pictureToken: string;
  readonly unknownKey: string;
}

/** Starts it with a secured Kafka of its own, at the most talkative log level, with all requests traced. */
export async function startCanaryFlow(): Promise<CanaryFlow> {
  await using stack = new AsyncDisposableStack();
  const canaries = new Canaries();
  const secrets = plantSecrets(canaries);
  const broker = await startKafkaBroker({ secured: true });
  stack.defer(() => broker.stop());
  const collector = stack.use(await startTraceReceiver());
  const upstream = await startOpenAiUpstream({ apiKey: secrets.vendorKey });
  stack.defer(() => upstream.close());
  const pictures = await startStandIn((_request, answer) => {
    answer.start(200, { "content-type": "image/png" });
    answer.end(`no image but ${secrets.pictureToken}`);
  });
  stack.defer(() => pictures.close());
  const hook = await startWebhookReceiver({ secret: secrets.hookSecret });
  stack.defer(() => hook.close());
  const flow = stack.use(
    await startFlowStack({
      kafkaBrokers: broker.brokers.join(","),
      env: {
        ...openAiEnv(upstream),
        OPENAI_API_KEY: secrets.vendorKey,
        ...collector.env,
        ...processEnv(canaries, broker),
      },
    }),
  );
  await useKnownMasterKeys(flow, canaries);
  await watchGenerated(flow, canaries);
  const kept = stack.move();
  const parts = { canaries, secrets, broker, collector, upstream, pictures, hook };
  return { ...flow, ...parts, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

function plantSecrets(canaries: Canaries): CanarySecrets {
  const hookSecret = `whsec_${randomBytes(32).toString("base64")}`;
  canaries.watch("webhook secret", hookSecret.slice("whsec_".length));
  const unknownKey = generateApiKey();
  canaries.watch("unknown API key", unknownKey);
  return {
    prompt: canaries.plant("prompt"),
    vendorKey: canaries.plant("provider key"),
    ownVendorKey: canaries.plant("own provider key"),
    hookSecret,
    hookHeader: canaries.plant("webhook header"),
    hookUrlToken: canaries.plant("webhook URL"),
    pictureToken: canaries.plant("reference URL"),
    unknownKey,
  };
}

function processEnv(canaries: Canaries, { secured }: KafkaBroker): Record<string, string> {
  canaries.watch("Kafka password", kafkaUsers.service);
  return {
    LOG_LEVEL: "trace",
    METRICS_PORT: "0",
    OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${canaries.plant("collector key")}`,
    KAFKA_BROKERS: secured?.sasl.join(",") ?? "",
    KAFKA_SASL_MECHANISM: "plain",
    KAFKA_USERNAME: "service",
    KAFKA_PASSWORD: kafkaUsers.service,
    SPEECH_FIRST_BYTE_TIMEOUT_MS: "700",
    SPEECH_IDLE_TIMEOUT_MS: "700",
    DESTINATION_ALLOWED_CIDRS: "127.0.0.1/32",
    REFERENCE_ALLOWED_CIDRS: "127.0.0.1/32",
  };
}

/** Nothing has been sealed yet. */
async function useKnownMasterKeys({ stack }: FlowStack, canaries: Canaries): Promise<void> {
  const masterKey = randomBytes(32).toString("base64");
  canaries.watch("MASTER_KEYS", masterKey);
  const restart = async (name: "account" | "destination") => {
    await stack.processes.stop(name);
    await stack.processes.restart(name, { MASTER_KEYS: `canary:${masterKey}` });
  };
  await Promise.all([restart("account"), restart("destination")]);
}

/** The secrets that the stack made itself. */
async function watchGenerated({ stack, databaseUrl }: FlowStack, canaries: Canaries): Promise<void> {
  canaries.watch("inference key", stack.inferenceKey);
  canaries.watch("management key", stack.managementKey);
  canaries.watch("DATABASE_URL password", new URL(databaseUrl).password);
  for (const issuer of issuers) {
    const { d } = JSON.parse(await readFile(stack.keyFiles.keyFile(issuer), "utf8")) as { d: string };
    canaries.watch(`private key of ${issuer}`, d);
  }
}
