import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ImageEndpointSchema,
  ImageModelSchema,
  ParameterCapabilitySchema,
} from "../../gen/media/image/v1/image_pb.ts";
import type { Catalog, ImageEndpoint, ImageModel } from "../../providers/catalog/catalog.ts";
import type { ImageCapabilities } from "../../providers/catalog/image.ts";
import type { ImageFormat } from "../../providers/contract.ts";
import { toProtoHealth } from "../../providers/routing/provider-states.ts";
import { type HealthSources, seenHealth } from "../../providers/routing/seen-health.ts";
import { canTranscode } from "./encode.ts";
import { offeredRatios, offeredTiers } from "./size.ts";

/** The image models of a catalogue as they travel, ordered by id. */
export function listImageModels(
  catalog: Catalog,
  seen: HealthSources,
): MessageInitShape<typeof ImageModelSchema>[] {
  return catalog.imageModels().map((model) => toProtoImageModel(model, seen));
}

function toProtoImageModel(
  model: ImageModel,
  seen: HealthSources,
): MessageInitShape<typeof ImageModelSchema> {
  const images = model.endpoints.map(({ image }) => image);
  return {
    id: model.id,
    permaslug: model.permaslug,
    name: model.name,
    description: model.description,
    createdUnixS: BigInt(model.createdUnixS),
    inputModalities: images.some(({ maxReferences }) => maxReferences > 0) ? ["text", "image"] : ["text"],
    outputModalities: ["image"],
    supportedParameters: anyOf(images.map(capabilitiesOf)).map(toProtoCapability),
    supportsStreaming: images.some(({ streaming }) => streaming),
    endpoints: model.endpoints.map((endpoint) => toProtoImageEndpoint(endpoint, seen)),
  };
}

function toProtoImageEndpoint(
  endpoint: ImageEndpoint,
  seen: HealthSources,
): MessageInitShape<typeof ImageEndpointSchema> {
  const { id, providerSlug, providerName, image, passthrough, prices } = endpoint;
  return {
    endpointId: id,
    providerSlug,
    providerName,
    supportedParameters: capabilitiesOf(image).map(toProtoCapability),
    allowedPassthroughParameters: [...passthrough],
    supportsStreaming: image.streaming,
    health: toProtoHealth(seenHealth(endpoint, seen)),
    prices: prices.map(({ billable, unit, nanoUsdPerMillion, variant }) => ({
      billable,
      unit,
      nanoUsdPerMillion,
      variant,
    })),
  };
}

/** What a parameter may be; a boolean one has an effect. */
type Capability = { readonly name: string } & (
  | { readonly kind: "enum"; readonly values: readonly string[] }
  | { readonly kind: "range"; readonly min: number; readonly max: number }
  | { readonly kind: "boolean" }
);

const allFormats: readonly ImageFormat[] = ["png", "jpeg", "webp", "svg"];
const lossyFormats: readonly ImageFormat[] = ["jpeg", "webp"];

/** What can be set on an endpoint, by name; what has no effect is not in it. */
function capabilitiesOf(image: ImageCapabilities): readonly Capability[] {
  const words = (name: string, values: readonly string[]): readonly Capability[] =>
    values.length === 0 ? [] : [{ name, kind: "enum", values }];
  const range = (name: string, min: number, max: number): readonly Capability[] =>
    max < min ? [] : [{ name, kind: "range", min, max }];
  const flag = (name: string, isSet: boolean): readonly Capability[] =>
    isSet ? [{ name, kind: "boolean" }] : [];
  const withAuto = (values: readonly string[]) => (values.length === 0 ? [] : ["auto", ...values]);
  return [
    ...words("aspect_ratio", withAuto(offeredRatios(image))),
    ...words("background", withAuto(image.backgrounds)),
    ...range("input_references", 1, image.maxReferences),
    ...flag("mask", image.mask),
    ...range("n", 1, image.maxN),
    ...(takesCompression(image) ? range("output_compression", 0, 100) : []),
    ...words("output_format", deliveredFormats(image)),
    ...words("quality", withAuto(image.qualities)),
    ...words("resolution", offeredTiers(image)),
    ...flag("seed", image.seed),
    ...(image.sizes.kind === "grid"
      ? flag("size", true)
      : words(
          "size",
          image.sizes.sizes.map(({ width, height }) => `${width}x${height}`),
        )),
    ...flag("stream", image.streaming),
  ];
}

/** What a client may ask for: what the endpoint makes, and what this service makes of it. */
function deliveredFormats({ formats }: ImageCapabilities): readonly ImageFormat[] {
  return allFormats.filter((format) => formats.some((native) => canTranscode(native, format)));
}

/** Whether a compression has an effect on at least one format. */
function takesCompression(image: ImageCapabilities): boolean {
  return deliveredFormats(image).some(
    (format) => lossyFormats.includes(format) && (image.compression || !image.formats.includes(format)),
  );
}

/** What can be set on at least one of several endpoints: all values, the widest range. */
function anyOf(endpoints: readonly (readonly Capability[])[]): readonly Capability[] {
  const byName = new Map<string, Capability>();
  for (const capability of endpoints.flat()) {
    const known = byName.get(capability.name);
    byName.set(capability.name, known === undefined ? capability : widest(known, capability));
  }
  return [...byName.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function widest(one: Capability, other: Capability): Capability {
  if (one.kind === "enum" && other.kind === "enum") {
    return { ...one, values: [...new Set([...one.values, ...other.values])] };
  }
  if (one.kind === "range" && other.kind === "range") {
    return { ...one, min: Math.min(one.min, other.min), max: Math.max(one.max, other.max) };
  }
  // Of a list of sizes and the freedom to choose any, the freedom.
  return one.kind === "boolean" ? one : other;
}

function toProtoCapability(capability: Capability): MessageInitShape<typeof ParameterCapabilitySchema> {
  const { name } = capability;
  switch (capability.kind) {
    case "enum":
      return { name, capability: { case: "enumValues", value: { values: [...capability.values] } } };
    case "range": {
      const { min, max } = capability;
      return { name, capability: { case: "range", value: { min, max } } };
    }
    case "boolean":
      return { name, capability: { case: "boolean", value: true } };
  }
}
