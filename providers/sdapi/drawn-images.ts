import { type ImageCall, ProviderError } from "../contract.ts";
import { decodeBase64 } from "../upstream/base64.ts";
import { isRecord } from "../upstream/failure.ts";
import { noImage } from "../upstream/image-answer.ts";
import { madeImage } from "../upstream/made-image.ts";
import type { SdapiJob } from "./job.ts";

/** As many images as were asked for, one after another. */
export async function* handedOut(images: () => Promise<Uint8Array[]>, { n }: Pick<ImageCall, "n">) {
  const rest = (await images()).slice(0, n);
  for (let image = rest.shift(); image !== undefined; image = rest.shift()) yield madeImage(image);
}

/** All images of an answer, as bytes. Throws ProviderError. */
export function imagesOf({ images }: Readonly<Record<string, unknown>>): Uint8Array[] {
  const texts: readonly unknown[] = Array.isArray(images) ? images : [];
  if (texts.length === 0) throw noImage();
  return texts.map(decodeImage);
}

/** Bytes of an image that is bare base64 or a data URL. Throws ProviderError. */
export function decodeImage(text: unknown): Uint8Array {
  const base64 = typeof text === "string" ? text.replace(/^data:[^,]{1,100},/, "") : "";
  const bytes = base64 === "" ? undefined : decodeBase64([Buffer.from(base64)]);
  if (bytes !== undefined) return bytes;
  throw new ProviderError("bad_answer", "The upstream sent an image that is not base64.", { status: 200 });
}

/** The preview in an answer of the server's progress, as it stands there; undefined where it is none of this job's. */
export function previewOf(
  progress: Readonly<Record<string, unknown>>,
  { taskId }: SdapiJob,
): string | undefined {
  const { current_image: image, current_task: task } = progress;
  const isOurs = typeof task !== "string" || task === taskId;
  const isDrawing = !isRecord(progress.state) || progress.state.job_count !== 0;
  return isOurs && isDrawing && typeof image === "string" && image !== "" ? image : undefined;
}
