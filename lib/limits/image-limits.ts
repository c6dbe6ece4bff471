import {
  ImageBackground,
  ImageFormat,
  ImageQuality,
  ImageResolution,
} from "../../gen/media/image/v1/image_pb.ts";

/** Encodings by their words. */
export const imageFormats = {
  png: ImageFormat.PNG,
  jpeg: ImageFormat.JPEG,
  webp: ImageFormat.WEBP,
  svg: ImageFormat.SVG,
} as const;
/** Backgrounds by their words. */
export const imageBackgrounds = {
  auto: ImageBackground.AUTO,
  transparent: ImageBackground.TRANSPARENT,
  opaque: ImageBackground.OPAQUE,
} as const;
/** Qualities by their words. */
export const imageQualities = {
  auto: ImageQuality.AUTO,
  low: ImageQuality.LOW,
  medium: ImageQuality.MEDIUM,
  high: ImageQuality.HIGH,
} as const;
/** Tiers of pixels by their words. */
export const imageResolutions = {
  "512": ImageResolution.IMAGE_RESOLUTION_512,
  "1K": ImageResolution.IMAGE_RESOLUTION_1K,
  "2K": ImageResolution.IMAGE_RESOLUTION_2K,
  "4K": ImageResolution.IMAGE_RESOLUTION_4K,
} as const;

/** Most images of a request. */
export const maxImages = 10;
/** Most images that a request may start from. */
export const maxReferences = 16;
/** The highest compression of an image, percent. */
export const maxCompression = 100;
/** Most previews of an image. */
export const maxPartialImages = 3;
