import { createHash, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerateResponse } from "../../gen/media/image/v1/image_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  imageData,
  imageFinished,
  imagePartial,
  imagePlaces,
  imageStart,
  imageStarted,
  imagesPath,
  imageText,
  leastImagesBody,
  postImages,
  startImageGateway,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import { errorOf, type GatewayServerOptions, testKeys } from "../../test/support/services/gateway-server.ts";
import {
  answering,
  describeMediaAnswers,
  type Frames,
  longFrame,
  requestLine,
} from "../http/media-answer.suite.ts";

const small = Buffer.from("an image");

/** A gateway whose image service answers so. */
const start = (
  place: (typeof imagePlaces)[number],
  generate: Frames<GenerateResponse>,
  settings?: GatewayServerOptions["settings"],
) => startImageGateway(place, { generate }, settings);

describe.for(imagePlaces)("images from a service %s, buffered", (place) => {
  test("are one JSON object with all of them, their types and the usage", async () => {
    const frames = [
      imageStarted({
        ignoredParameters: ["quality", "provider.options.acme.x"],
        unrecognizedPromptWords: ["gryphon", "正義", "a,b"],
      }),
      ...wholeImage(0, small),
      ...wholeImage(1, Buffer.from("<svg/>"), { mediaType: "image/svg+xml", pieceBytes: 1 }),
      imageFinished({ byok: true, costNanoUsd: 12_345n }),
    ];
    await using both = await start(place, answering(frames));
    const response = await postImages(both.gateway);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/json",
      "x-generation-id": "gen-img-1",
      "x-ignored-parameters": "quality,provider.options.acme.x",
      "x-unrecognized-prompt-words": "gryphon,%E6%AD%A3%E7%BE%A9,a%2Cb",
      "x-request-id": expect.stringMatching(/^req-/),
    });
    const answer = (await response.json()) as { created: number };
    expect(answer).toEqual({
      created: expect.any(Number),
      data: [
        { b64_json: small.toString("base64"), media_type: "image/png" },
        { b64_json: Buffer.from("<svg/>").toString("base64"), media_type: "image/svg+xml" },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 0.000012345, is_byok: true },
    });
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(60);
  });

  test("arrive whole, however large they are and however their frames are cut", async () => {
    const images = [randomBytes(5_000_001), randomBytes(3_000_000)];
    const frames = [
      imageStarted(),
      ...images.flatMap((image, index) => wholeImage(index, image, { pieceBytes: index ? 77_777 : 1 << 20 })),
      imageFinished(),
    ];
    await using both = await start(place, answering(frames));
    const { data } = (await (await postImages(both.gateway)).json()) as { data: { b64_json: string }[] };
    const hashOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
    expect(data.map(({ b64_json }) => hashOf(Buffer.from(b64_json, "base64")))).toEqual(images.map(hashOf));
  });

  test("come without previews and texts, also when the flag is set but the endpoint does not stream", async () => {
    const frames = [
      imageStarted({ streaming: false }),
      imagePartial(0, small),
      imageText("<svg>"),
      ...wholeImage(0, small),
      imageFinished(),
    ];
    await using both = await start(place, answering(frames));
    const response = await postImages(both.gateway, { ...leastImagesBody, stream: true });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ data: [{ b64_json: small.toString("base64") }] });
  });

  test("come buffered from an endpoint that streams, when the flag is not set", async () => {
    const frames = [imageStarted({ streaming: true }), ...wholeImage(0, small), imageFinished()];
    await using both = await start(place, answering(frames));
    expect((await postImages(both.gateway)).headers.get("content-type")).toBe("application/json");
  });

  test("may still fail with a status of its own until the first of them", async () => {
    const frames = [imageStarted(), imagePartial(0, small)];
    const handler = answering(frames, async () => {
      throw new DomainError(ErrorReason.CONTENT_POLICY, "no");
    });
    await using both = await start(place, handler);
    const response = await postImages(both.gateway);
    expect(response.headers.get("x-generation-id")).toBe("gen-img-1");
    expect(await errorOf(response)).toEqual({ status: 502, reason: "content_policy" });
  });

  test.for([
    ["an error between them", [imageStarted(), ...wholeImage(0, small)], true],
    ["an error inside of one", [imageStarted(), imageStart(0, 100), imageData(small)], true],
    ["an end without `finished`", [imageStarted(), ...wholeImage(0, small)], false],
    [
      "an image that lacks bytes",
      [imageStarted(), imageStart(0, 9), imageData(small), imageFinished()],
      false,
    ],
    [
      "an image with bytes left",
      [imageStarted(), imageStart(0, 7), imageData(small), imageFinished()],
      false,
    ],
  ] as const)("are cut by %s, and never look whole", async ([, frames, fails]) => {
    const handler = answering(frames, async () => {
      if (fails) throw new DomainError(ErrorReason.PROVIDER_FAILED, "broke");
    });
    await using both = await start(place, handler);
    const response = await postImages(both.gateway).catch(() => undefined);
    await expect(response?.text() ?? Promise.reject(new Error("cut"))).rejects.toThrow();
    const line = await requestLine(both.gateway);
    expect(line).toMatchObject({ complete: false, reason: fails ? "provider_failed" : "internal" });
  });

  test.for([
    ["nothing at all", []],
    ["no image", [imageStarted(), imageFinished()]],
    ["an image before its start", wholeImage(0, small)],
    ["an image of no bytes", [imageStarted(), imageStart(0, 0), imageFinished()]],
    ["two starts", [imageStarted(), imageStarted(), ...wholeImage(0, small), imageFinished()]],
  ] as const)("that are %s are a fault of ours", async ([, frames]) => {
    await using both = await start(place, answering(frames));
    expect(await errorOf(await postImages(both.gateway))).toEqual({ status: 500, reason: "internal" });
    expect(both.gateway.logged).toContainEqual(expect.objectContaining({ level: "error" }));
  });
});

describeMediaAnswers({
  places: imagePlaces,
  request: { path: imagesPath, key: testKeys.images, body: leastImagesBody },
  start,
  timeoutSetting: "imageTimeoutMs",
  started: imageStarted(),
  begun: [imageStart(0, 9), imageData(small)],
  long: {
    before: [imageStart(0, longFrame.bytes * longFrame.count)],
    frame: imageData(new Uint8Array(longFrame.bytes)),
    after: [imageFinished()],
  },
  expectWhole: (bytes) => expect(bytes).toBeGreaterThan((longFrame.bytes * longFrame.count * 4) / 3),
});
