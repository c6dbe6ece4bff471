/** A setting of a type of destination. */
export interface TypeSetting {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  /** It is not seen while it is typed, and forgotten when it is sent. */
  readonly isSecret?: boolean;
}

/** A type of destination, as docs/destinations.md has it: the interface takes `config` as it is and tells no types. */
export interface DestinationType {
  readonly id: string;
  readonly title: string;
  readonly settings: readonly TypeSetting[];
}

const address = { isRequired: true, hint: "http or https; a private address is refused." };

/** Every type that there is. */
export const destinationTypes: readonly DestinationType[] = [
  {
    id: "webhook",
    title: "Webhook",
    settings: [
      { name: "url", label: "Address", ...address },
      { name: "method", label: "Method", hint: "POST or PUT; POST when it is left out." },
      {
        name: "signingSecret",
        label: "Signing secret",
        hint: "whsec_ and 24 to 64 bytes in base64; signs every delivery. May be left out.",
        isSecret: true,
      },
    ],
  },
  {
    id: "otel-collector",
    title: "OpenTelemetry collector",
    settings: [
      {
        name: "endpoint",
        label: "Endpoint",
        isRequired: true,
        hint: "/v1/traces is appended unless it ends so.",
      },
    ],
  },
  {
    id: "langfuse",
    title: "Langfuse",
    settings: [
      { name: "publicKey", label: "Public key", isRequired: true },
      { name: "secretKey", label: "Secret key", isRequired: true, isSecret: true },
      { name: "baseUrl", label: "Base URL", hint: "https://us.cloud.langfuse.com when it is left out." },
    ],
  },
  {
    id: "grafana",
    title: "Grafana Cloud",
    settings: [
      { name: "instanceId", label: "Instance ID", isRequired: true },
      { name: "apiKey", label: "API key", isRequired: true, isSecret: true },
      { name: "baseUrl", label: "Base URL", isRequired: true, hint: "The OTLP gateway." },
    ],
  },
  {
    id: "s3",
    title: "S3 bucket",
    settings: [
      { name: "bucketName", label: "Bucket", isRequired: true },
      { name: "accessKeyId", label: "Access key ID", isRequired: true },
      { name: "secretAccessKey", label: "Secret access key", isRequired: true, isSecret: true },
      {
        name: "sessionToken",
        label: "Session token",
        hint: "Only with credentials lent for a while.",
        isSecret: true,
      },
      { name: "region", label: "Region", hint: "us-east-1 when it is left out." },
      { name: "endpoint", label: "Endpoint", hint: "Of a store other than Amazon's." },
      { name: "prefix", label: "Prefix", hint: "openrouter-traces when it is left out." },
      { name: "pathTemplate", label: "Path", hint: "{prefix}/{date}; also {year} {month} {day} {hour}." },
    ],
  },
];

/** What was typed into a form, by the setting's name. */
export type Typed = Readonly<Record<string, string>>;

/** What is wrong, by the setting's name; its headers are `headers`. */
export function faultsOf({ settings }: DestinationType, typed: Typed, headers: string): Typed {
  const missing = settings.filter(({ name, isRequired }) => isRequired && !typed[name]?.trim());
  const faults = Object.fromEntries(missing.map(({ name }) => [name, "This is needed."]));
  return headersOf(headers) === undefined ? { ...faults, headers: "One a line, as name: value." } : faults;
}

/** Headers, one a line; undefined when a line is none. */
export function headersOf(text: string): Readonly<Record<string, string>> | undefined {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const pairs = lines.map((line) => /^\s*([^\s:]+)\s*:\s*(\S.*?)\s*$/.exec(line));
  if (pairs.includes(null)) return undefined;
  return Object.fromEntries(pairs.map((pair) => [pair?.[1], pair?.[2]]));
}

/** The settings of a type that were typed; what is empty is left out. */
export function configOf(
  { settings }: DestinationType,
  typed: Typed,
  headers: string,
): Record<string, unknown> {
  const filled = settings.flatMap(({ name }) => (typed[name]?.trim() ? [[name, typed[name].trim()]] : []));
  return { ...Object.fromEntries(filled), ...(headers.trim() === "" ? {} : { headers: headersOf(headers) }) };
}

/** What was typed, without its secrets. */
export function withoutSecrets({ settings }: DestinationType, typed: Typed): Typed {
  const secrets = new Set(settings.filter(({ isSecret }) => isSecret).map(({ name }) => name));
  return Object.fromEntries(Object.entries(typed).filter(([name]) => !secrets.has(name)));
}
