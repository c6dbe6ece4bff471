/** Most bytes of one `image_data` frame; whole images are cut into such pieces. */
export const maxImageDataBytes = 1 << 20;

/** Most bytes of one preview, which travels whole; larger ones are left out. */
export const maxPartialImageBytes = 3 << 20;

/** What stands around the bytes that a message carries. */
const messageMarginBytes = 1 << 20;

/**
 * Limits of media.image.v1 at its server, for request bodies of at most so many bytes. Answers are bounded by their
 * frames: the largest is a preview, which JSON clients get in base64. A client that writes as much as is read here is
 * refused before it sends anything.
 */
export function imageMessageLimits(maxBodyBytes: number) {
  return {
    readMaxBytes: maxBodyBytes + messageMarginBytes,
    writeMaxBytes: (maxPartialImageBytes / 3) * 4 + messageMarginBytes,
  };
}
