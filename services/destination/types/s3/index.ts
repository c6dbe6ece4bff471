import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type DeliveryContext,
  DeliveryError,
  type DeliveryReceipt,
  type DestinationType,
  type ReceiverAnswer,
} from "../contract.ts";
import { answerError, checkAnswer, textOf } from "../receiver-answer.ts";
import { readS3Config, type S3Config } from "./config.ts";
import { encodeLines } from "./event-record.ts";
import { renderObjectPath } from "./object-path.ts";
import { bucketUrl, type S3Object, type SignedPut, signPut } from "./sign-put.ts";

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

/** Puts an object into the bucket; replaces what is there. Throws DeliveryError. */
async function putObject(
  object: S3Object,
  config: S3Config,
  { http, signal, nowMs }: DeliveryContext,
): Promise<DeliveryReceipt> {
  const { url, headers } = await sign(object, config, nowMs());
  const answer = await http.send({ method: "PUT", url, headers, body: object.body, signal });
  checkAnswer(answer, { nowMs: nowMs(), explain });
  // Every store of this kind names what it has stored by its tag; what answers without one is something else.
  if (answer.headers.etag === undefined) {
    throw answerError("what answers at the address is no S3 store", answer);
  }
  return { status: answer.status };
}

async function sign(object: S3Object, config: S3Config, nowMs: number): Promise<SignedPut> {
  try {
    return await signPut(object, config, nowMs);
  } catch (thrown) {
    throw new DeliveryError("the settings make no request", { cause: thrown });
  }
}

/** Codes of S3's errors that tell more than their status. */
const messages: ReadonlyMap<string, string> = new Map([
  ["AccessDenied", "the credentials may not write to this bucket"],
  ["AuthorizationHeaderMalformed", "the bucket is in another region"],
  ["ExpiredToken", "the session token has expired"],
  ["InvalidAccessKeyId", "the access key id is not known"],
  ["InvalidToken", "the session token is not valid"],
  ["NoSuchBucket", "the bucket does not exist"],
  ["PermanentRedirect", "the bucket is in another region"],
  ["RequestTimeTooSkewed", "the clocks of this system and of the receiver differ too much"],
  ["SignatureDoesNotMatch", "the secret access key is not the right one"],
  ["SlowDown", "the receiver asks to slow down"],
]);

function explain(answer: ReceiverAnswer): string | undefined {
  const code = /<Code>([A-Za-z]+)<\/Code>/.exec(textOf(answer))?.[1];
  return code === undefined ? undefined : messages.get(code);
}
