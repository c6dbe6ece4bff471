import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { DestinationType } from "../contract.ts";
import { readS3Config, type S3Config } from "./config.ts";
import { putObject } from "./deliver.ts";
import { encodeLines } from "./event-record.ts";
import { renderObjectPath } from "./object-path.ts";
import { bucketUrl } from "./sign-put.ts";

/**
 * Amazon S3, or a store that speaks as it does. A batch is an object of JSON lines, named after its delivery id and
 * placed by the end of its first event, so that a repetition replaces it.
 */
export const s3: DestinationType<S3Config> = {
  slug: "s3",
  secrets: ["secretAccessKey", "sessionToken"],
  readConfig: readS3Config,
  urlsOf: (config) => [bucketUrl(config)],
  maxBatchEvents: 500,
  async deliver(batch, config, context) {
    const path = renderObjectPath(config.pathTemplate, config.prefix, batch.events[0]?.endedAt);
    const key = `${path === "" ? "" : `${path}/`}${batch.id}.jsonl`;
    const body = encodeLines(batch);
    return putObject({ key, contentType: "application/x-ndjson", body, headers: {} }, config, context);
  },
  async test(config, context) {
    const path = renderObjectPath(config.pathTemplate, config.prefix, timestampFromMs(context.nowMs()));
    const key = `${path === "" ? "" : `${path}/`}connection-test.json`;
    const body = Buffer.from('{"connection_test":true}\n');
    const headers = { "x-test-connection": "true" };
    return putObject({ key, contentType: "application/json", body, headers }, config, context);
  },
};
