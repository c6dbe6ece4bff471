import sharp from "sharp";
import type { Extent } from "../cast/actor.ts";

const pixels = 240;
const faint = 24;

/** Where shapes are painted within a frame, faint ones left out; to one part of 240 of the frame's longer side. */
export async function inkExtent(markup: string, frame: Extent): Promise<Extent> {
  const [width, height] = [frame.right - frame.left, frame.bottom - frame.top];
  const unit = Math.max(width, height) / pixels;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width / unit}" height="${height / unit}"`,
    ` viewBox="${frame.left} ${frame.top} ${width} ${height}" preserveAspectRatio="none">${markup}</svg>`,
  ];
  const image = sharp(Buffer.from(svg.join(""))).extractChannel(3);
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  let [left, right, top, bottom] = [info.width, 0, info.height, 0];
  for (const [index, alpha] of data.entries()) {
    if (alpha <= faint) continue;
    const [x, y] = [index % info.width, Math.floor(index / info.width)];
    [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
  }
  return {
    left: frame.left + left * unit,
    right: frame.left + right * unit,
    top: frame.top + top * unit,
    bottom: frame.top + bottom * unit,
  };
}
