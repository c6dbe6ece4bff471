import { fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  GenerateRequestSchema,
  ImageBackground,
  ImageFormat,
  ImageQuality,
  ImageResolution,
} from "../../gen/media/image/v1/image_pb.ts";
import { imageMessageLimits } from "../../lib/limits/image-messages.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { imagesBodySchema, toGenerateRequest } from "./body.ts";

const least = { model: "acme/brush", prompt: "A lighthouse." };
const pixel = Buffer.from("iVBORw0KGgo=", "base64");
const dataUrl = `data:image/png;base64,${pixel.toString("base64")}`;
const reference = (url: unknown) => ({ type: "image_url", image_url: { url } });

const aspectRatios =
  "1:1 1:2 1:4 1:8 2:1 2:3 3:2 3:4 4:1 4:3 4:5 5:4 8:1 9:16 16:9 9:19.5 19.5:9 9:20 20:9 9:21 21:9 auto";

function refusalOf(body: object): DomainError {
  try {
    toGenerateRequest({ ...body });
  } catch (thrown) {
    if (thrown instanceof DomainError) return thrown;
  }
  throw new Error("was not refused");
}

describe("a body that is taken", () => {
  test("with the least fields asks for one png and leaves the rest to the model", () => {
    expect(toGenerateRequest(least)).toMatchObject({
      ...least,
      aspectRatio: "",
      background: ImageBackground.AUTO,
      inputReferences: [],
      outputFormat: ImageFormat.PNG,
      quality: ImageQuality.AUTO,
      resolution: ImageResolution.IMAGE_RESOLUTION_UNSPECIFIED,
      size: "",
      stream: false,
      user: "",
      sessionId: "",
    });
    const { n, seed, outputCompression, provider, trace } = toGenerateRequest(least);
    expect([n, seed, outputCompression, provider, trace]).toEqual(Array(5).fill(undefined));
  });

  test("with all fields hands on each of them", () => {
    const request = toGenerateRequest({
      ...least,
      aspect_ratio: "9:19.5",
      background: "transparent",
      input_references: [reference(dataUrl), reference("https://images.test/a.png")],
      n: 10,
      output_compression: 0,
      output_format: "webp",
      quality: "high",
      resolution: "512",
      seed: -7,
      size: "2K",
      stream: true,
      user: "u",
      session_id: "s",
      trace: { trace_id: "t" },
      provider: { only: ["acme"], options: { acme: { style: "ink" } } },
    });
    expect(request).toMatchObject({
      aspectRatio: "9:19.5",
      background: ImageBackground.TRANSPARENT,
      n: 10,
      outputCompression: 0,
      outputFormat: ImageFormat.WEBP,
      quality: ImageQuality.HIGH,
      resolution: ImageResolution.IMAGE_RESOLUTION_512,
      seed: -7n,
      size: "2K",
      stream: true,
      user: "u",
      sessionId: "s",
      trace: { trace_id: "t" },
      provider: { only: ["acme"], options: { acme: { style: "ink" } } },
    });
    expect(request.inputReferences.map(({ source }) => source)).toEqual([
      { case: "data", value: pixel },
      { case: "url", value: "https://images.test/a.png" },
    ]);
  });

  test.for([
    ["aspect_ratio", aspectRatios.split(" ")],
    ["background", ["auto", "transparent", "opaque"]],
    ["output_format", ["png", "jpeg", "webp", "svg"]],
    ["quality", ["auto", "low", "medium", "high"]],
    ["resolution", ["512", "1K", "2K", "4K"]],
    ["size", ["512", "1K", "2K", "4K", "1x1", "1536x1024", "99999x1"]],
  ] as const)("may have each value of %s, and no other", ([field, values]) => {
    const seen = new Set(
      values.map((value) =>
        Buffer.from(
          toBinary(GenerateRequestSchema, toGenerateRequest({ ...least, [field]: value })),
        ).toString("hex"),
      ),
    );
    expect(seen.size).toBe(values.length);
    for (const value of [...values.map((word) => `${word} `), "", "AUTO", "xhigh", "0x1", "1K2K", 1]) {
      expect(refusalOf({ ...least, [field]: value }).issues[0]?.path).toBe(field);
    }
  });

  test("may have null for every field that is not required, and fields that nobody knows", () => {
    const optional = Object.keys(imagesBodySchema.properties).filter((name) => !(name in least));
    const nulls = Object.fromEntries(optional.map((name) => [name, null]));
    expect(toGenerateRequest({ ...least, ...nulls, response_format: 7, detail: {} })).toEqual(
      toGenerateRequest(least),
    );
  });

  test("may name references in any case, and say more about them", () => {
    const { inputReferences } = toGenerateRequest({
      ...least,
      input_references: [
        { ...reference("HTTPS://images.test/a"), role: "style" },
        {
          type: "image_url",
          image_url: { url: dataUrl.replace("data:image", "DATA:IMAGE"), detail: "high" },
        },
      ],
    });
    expect(inputReferences.map(({ source }) => source.case)).toEqual(["url", "data"]);
  });

  test("fits a message to the service, however large it is", () => {
    const maxBodyBytes = 2 << 20;
    const numbers = Array.from({ length: 32_700 }, () => 1);
    const prompt = "語".repeat(131_072);
    const body = {
      ...least,
      prompt,
      trace: { x: numbers.slice(0, 8000) },
      provider: { options: { acme: { numbers } } },
    };
    const leftBytes = maxBodyBytes - Buffer.byteLength(JSON.stringify(body));
    const image = Buffer.alloc(Math.floor((leftBytes * 3) / 4)).toString("base64");
    const input_references = [reference(`data:image/png;base64,${image}`)];
    const bytes = toBinary(GenerateRequestSchema, toGenerateRequest({ ...body, input_references }));
    expect(bytes.length).toBeLessThan(imageMessageLimits(maxBodyBytes).readMaxBytes);
    expect(fromBinary(GenerateRequestSchema, bytes).prompt).toBe(prompt);
  });
});

describe("a body that is refused", () => {
  test.for([
    [{}, ["model", "prompt"]],
    [{ ...least, prompt: "" }, ["prompt"]],
    [{ ...least, prompt: ["a"] }, ["prompt"]],
    [{ ...least, prompt: null }, ["prompt"]],
    [{ ...least, model: "" }, ["model"]],
    [{ ...least, model: 5 }, ["model"]],
    [{ ...least, n: 0 }, ["n"]],
    [{ ...least, n: 11 }, ["n"]],
    [{ ...least, n: 1.5 }, ["n"]],
    [{ ...least, n: "1" }, ["n"]],
    [{ ...least, output_compression: -1 }, ["output_compression"]],
    [{ ...least, output_compression: 101 }, ["output_compression"]],
    [{ ...least, output_compression: 50.5 }, ["output_compression"]],
    [{ ...least, seed: 0.5 }, ["seed"]],
    [{ ...least, seed: 2 ** 53 }, ["seed"]],
    [{ ...least, seed: "7" }, ["seed"]],
    [{ ...least, stream: "true" }, ["stream"]],
    [{ ...least, input_references: {} }, ["input_references"]],
    [{ ...least, input_references: Array(17).fill(reference(dataUrl)) }, ["input_references"]],
    [{ ...least, input_references: [dataUrl] }, ["input_references.0"]],
    [{ ...least, input_references: [{ type: "image_url" }] }, ["input_references.0.image_url"]],
    [{ ...least, input_references: [{ ...reference(dataUrl), type: "url" }] }, ["input_references.0.type"]],
    [{ ...least, input_references: [reference(5)] }, ["input_references.0.image_url.url"]],
    [
      { ...least, input_references: [reference("ftp://images.test/a")] },
      ["input_references.0.image_url.url"],
    ],
    [{ ...least, input_references: [reference("images.test/a.png")] }, ["input_references.0.image_url.url"]],
    [
      { ...least, input_references: [reference(`https://images.test/${"a".repeat(9000)}`)] },
      ["input_references.0.image_url.url"],
    ],
    [{ ...least, user: "x".repeat(257) }, ["user"]],
    [{ ...least, trace: [] }, ["trace"]],
    [{ ...least, provider: { sort: "exacto" } }, ["provider.sort"]],
  ] as const)("%j", ([body, paths]) => {
    const error = refusalOf(body);
    expect(error.reason).toBe(ErrorReason.INVALID_BODY);
    expect([...new Set(error.issues.map(({ path }) => path))]).toEqual(paths);
  });

  test.for([
    "data:",
    "data:text/plain;base64,AAAA",
    "data:image/png,AAAA",
    "data:image/png;base64,",
    "data:image/png;base64,AAA",
    "data:image/png;base64,A A=",
    `data:image/png;base64,${Buffer.alloc((20 << 20) + 1).toString("base64")}`,
  ])("for a data URL that holds no image's bytes: %.40s", (url) => {
    const error = refusalOf({ ...least, input_references: [reference(dataUrl), reference(url)] });
    expect(error.reason).toBe(ErrorReason.REFERENCE_REFUSED);
    expect(error.issues).toEqual([
      { path: "input_references.1.image_url.url", message: expect.stringMatching(/^is /) },
    ]);
  });

  test("as an unknown model when its name is longer than any", () => {
    expect(refusalOf({ ...least, model: "x".repeat(257) }).reason).toBe(ErrorReason.MODEL_UNKNOWN);
    expect(refusalOf({ ...least, model: "x".repeat(257), n: 0 }).reason).toBe(ErrorReason.INVALID_BODY);
  });
});

test("any JSON object is either refused with a reason or becomes a request that can be sent", () => {
  const names = Object.keys(imagesBodySchema.properties);
  const words = fc.constantFrom("auto", "png", "2K", "1:1", "1024x1024", "acme/one", 1, true, {}, [
    reference(dataUrl),
  ]);
  const body = fc.dictionary(fc.constantFrom(...names, "other"), fc.oneof(fc.jsonValue(), words));
  let taken = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        body,
        body.map((fields) => ({ ...fields, ...least })),
      ),
      (fields) => {
        try {
          toBinary(GenerateRequestSchema, toGenerateRequest(fields));
          taken += 1;
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(DomainError);
          expect((thrown as DomainError).issues.length).toBeGreaterThan(0);
        }
      },
    ),
    { numRuns: 1000 },
  );
  expect(taken).toBeGreaterThan(0);
});
