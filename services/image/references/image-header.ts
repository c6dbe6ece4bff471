/** What an image says of itself before anything of it is decoded. */
export interface ImageHeader {
  readonly width: number;
  readonly height: number;
  readonly animated: boolean;
  /** Most memory that reading it from top to bottom takes, bytes: all of it where no row comes before the last. */
  readonly decodedBytes: number;
}

/** Something that no image has which people make, in words that go after its name. */
export class HeaderProblem extends Error {
  override readonly name = "HeaderProblem";
}

const mebibyte = 1024 * 1024;
/** Rows that libvips keeps when it reads from top to bottom, with room to spare. */
const rowsKept = 640;
/** What unpacked metadata takes for each of its bytes; measured at 5.7 for EXIF. */
const metadataFactor = 6;

/** The memory of an image of which some rows are held at a time, `wholeBytes` in all, and its metadata. */
export function decodedBytesOf(image: {
  readonly height: number;
  readonly rowBytes: number;
  /** Held besides the rows, over the whole image. */
  readonly wholeBytes: number;
  readonly metadataBytes: number;
}): number {
  const rows = Math.min(image.height, rowsKept) * image.rowBytes;
  return mebibyte + rows + image.wholeBytes + metadataFactor * image.metadataBytes;
}
