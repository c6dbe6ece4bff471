/**
 * Paints the pictures that docs/painter.md lists, and puts them together as docs/images/painter.webp. The same list
 * gives the same sheet.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { paintSvg } from "@media-gateway/painter";
import sharp from "sharp";

const docs = join(import.meta.dirname, "..", "docs");
const columns = 4;
const side = 460;
const gap = 20;
const ground = "#f6f2ea";

const text = readFileSync(join(docs, "painter.md"), "utf8");
const entries = [...text.matchAll(/^\d+\. `([^`]+)` \(seed (\d+)\)$/gm)].map(
  ([, prompt = "", seed = "1"]) => ({
    prompt,
    seed,
  }),
);
const pictures = await Promise.all(entries.map(paint));
const rows = Math.ceil(pictures.length / columns);
const place = (index: number) => gap + index * (side + gap);
mkdirSync(join(docs, "images"), { recursive: true });
await sharp({
  create: { width: place(columns), height: place(rows), channels: 3, background: ground },
})
  .composite(
    pictures.map((input, index) => ({
      input,
      left: place(index % columns),
      top: place(Math.floor(index / columns)),
    })),
  )
  .webp({ quality: 84 })
  .toFile(join(docs, "images", "painter.webp"));
console.log(`${pictures.length} pictures`);

/** One picture with rounded corners, drawn at twice its size and made smaller. */
async function paint({ prompt, seed }: { prompt: string; seed: string }): Promise<Buffer> {
  const svg = paintSvg({
    prompt,
    seed,
    width: side * 2,
    height: side * 2,
    quality: "high",
    transparent: false,
    palette: [],
    look: "plain",
  });
  const corners = Buffer.from(
    `<svg width="${side}" height="${side}"><rect width="100%" height="100%" rx="14"/></svg>`,
  );
  return await sharp(await sharp(Buffer.from(svg)).resize(side, side).png().toBuffer())
    .composite([{ input: corners, blend: "dest-in" }])
    .png()
    .toBuffer();
}
