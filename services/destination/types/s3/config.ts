import type { JsonObject } from "@bufbuild/protobuf";
import { SettingsReader, type SettingsResult } from "../settings.ts";
import { isObjectPath, unknownPlaceholder } from "./object-path.ts";

/** Settings of a bucket. */
export interface S3Config {
  readonly bucketName: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Only with credentials that are lent for a while. */
  readonly sessionToken?: string;
  readonly region: string;
  /** The address of a store other than Amazon's; its bucket is then named in the path, not in the host. */
  readonly endpoint?: string;
  /** What `{prefix}` stands for. */
  readonly prefix: string;
  /** Where objects go within the bucket: object-path.ts has the placeholders. */
  readonly pathTemplate: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads them. What the signature covers by itself is ours to set. */
export function readS3Config(config: JsonObject): SettingsResult<S3Config> {
  const read = new SettingsReader(config);
  const sessionToken = read.optionalText("sessionToken", { maxLength: 4096 });
  const endpoint = read.optionalText("endpoint", { maxLength: 2048 });
  const settings: S3Config = {
    bucketName: read.text("bucketName", bucketRule),
    accessKeyId: read.text("accessKeyId", { maxLength: 256 }),
    secretAccessKey: read.text("secretAccessKey", { maxLength: 256 }),
    ...(sessionToken === undefined ? {} : { sessionToken }),
    region: read.text("region", regionRule, "us-east-1"),
    ...(endpoint === undefined ? {} : { endpoint: read.url("endpoint") }),
    prefix: read.text("prefix", pathRule, "openrouter-traces"),
    pathTemplate: read.text("pathTemplate", pathRule, "{prefix}/{date}"),
    headers: read.headers(["authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"]),
  };
  checkPaths(read, settings);
  return read.done(settings);
}

const bucketRule = {
  maxLength: 63,
  pattern: /^[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]$/,
  expected: "must be the name of a bucket",
};
const regionRule = { maxLength: 64, pattern: /^[A-Za-z0-9-]+$/, expected: "must be the name of a region" };
const pathRule = {
  maxLength: 256,
  pattern: /^[^\p{Cc}\p{Cs}]+$/u,
  expected: "must have no control characters",
};

function checkPaths(read: SettingsReader, { prefix, pathTemplate }: S3Config): void {
  const unknown = unknownPlaceholder(pathTemplate);
  if (unknown !== undefined) {
    read.refuse("pathTemplate", `has ${unknown}; known are {prefix} {date} {year} {month} {day} {hour}`);
  }
  if (!isObjectPath(prefix)) read.refuse("prefix", "must have no . or .. between slashes");
  if (!isObjectPath(pathTemplate)) read.refuse("pathTemplate", "must have no . or .. between slashes");
}
