import type { ImagesRequest } from "./image-run.ts";
import { type ImageModel, mostOf, valuesOf } from "./models.ts";

/** What stands in the form; `size` is a tier or pixels. */
export interface ImageFields {
  readonly prompt: string;
  readonly size: string;
  readonly ratio: string;
  readonly quality: string;
  readonly format: string;
  readonly n: string;
}

/** A choice, and what of it counts: the wish where the model has it, else the first. */
interface Choice {
  readonly options: readonly { readonly id: string; readonly title: string }[];
  readonly value: string;
}

type ImageModelAbilities = Pick<ImageModel, "supported_parameters" | "supports_streaming" | "id">;

const anyQuality = ["auto", "low", "medium", "high"];

/** What can be chosen with a model. */
export function imageChoices(
  model: ImageModelAbilities,
  fields: ImageFields,
): Readonly<Record<Exclude<keyof ImageFields, "prompt">, Choice>> {
  const sizes = ["auto", ...valuesOf(model, "resolution"), ...valuesOf(model, "size")];
  const size = choiceOf(sizes, fields.size);
  // Pixels say the ratio themselves.
  const ratios = size.value.includes("x") ? ["auto"] : valuesOf(model, "aspect_ratio", ["auto"]);
  const counts = Array.from({ length: Math.max(1, mostOf(model, "n")) }, (_, index) => String(index + 1));
  return {
    size,
    ratio: choiceOf(ratios, fields.ratio),
    quality: choiceOf(valuesOf(model, "quality", anyQuality), fields.quality),
    format: choiceOf(valuesOf(model, "output_format", ["png"]), fields.format),
    n: choiceOf(counts, fields.n),
  };
}

const titles: Readonly<Record<string, string>> = { auto: "Auto", low: "Low", medium: "Medium", high: "High" };

function choiceOf(values: readonly string[], wish: string): Choice {
  const options = [...new Set(values)].map((id) => ({ id, title: titles[id] ?? id.replace("x", " × ") }));
  return { options, value: values.includes(wish) ? wish : (values[0] ?? "") };
}

/** The request that a form makes, with previews where the model has any. */
export function imagesRequest(model: ImageModelAbilities, fields: ImageFields): ImagesRequest {
  const { size, ratio, quality, format, n } = imageChoices(model, fields);
  const sizes = size.value.includes("x") ? { size: size.value } : { resolution: size.value };
  // Each value is one of those that the gateway itself listed under the parameter's name.
  return {
    model: model.id,
    prompt: fields.prompt,
    ...(size.value !== "auto" && sizes),
    ...(ratio.value !== "auto" && { aspect_ratio: ratio.value }),
    ...(quality.value !== "auto" && { quality: quality.value }),
    output_format: format.value,
    ...(n.value !== "1" && { n: Number(n.value) }),
    ...(model.supports_streaming && { stream: true }),
  } as ImagesRequest;
}
