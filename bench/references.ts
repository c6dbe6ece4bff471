/**
 * What the worst images that references may be cost: CPU and memory of decoding each in a process of its own, beside
 * the memory that the budget counts for it. Linux only.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32, deflateSync } from "node:zlib";
import sharp, { type Sharp } from "sharp";
import { DecodeBudget, maxDecodedBytes, maxImagePixels } from "../services/image/references/decode-budget.ts";
import { decodeReference, readReference } from "../services/image/references/reference-check.ts";
import { peakMibOf } from "./process-usage.ts";

const mebibyte = 1024 * 1024;
const maxFileBytes = 20 * mebibyte;

interface Cost {
  readonly cpuMs: number;
  readonly memoryMib: number;
}

/** A pattern of many colours. */
function pattern(side: number, channels: 3 | 4): Sharp {
  const tile = Buffer.alloc(99_991, 0);
  for (let index = 0; index < tile.length; index++) tile[index] = index ^ (index >> 6);
  const raw = Buffer.alloc(side * side * channels, tile);
  return sharp(raw, { raw: { width: side, height: side, channels }, limitInputPixels: false });
}

/** The largest image of a kind that is decoded at all, of which each pixel is counted as so many bytes. */
async function largest(make: (side: number) => Promise<Buffer>, bytesAPixel: number) {
  const pixels = Math.min(maxImagePixels, (maxDecodedBytes - 18 * mebibyte) / bytesAPixel);
  for (let side = Math.floor(Math.sqrt(pixels)); ; side = Math.floor(side * 0.97)) {
    const bytes = await make(side);
    if (bytes.length <= maxFileBytes && isTaken(bytes)) return readReference(bytes);
  }
}

function isTaken(bytes: Buffer): boolean {
  try {
    readReference(bytes);
    return true;
  } catch {
    return false;
  }
}

/** A progressive JPEG of one colour with as many scans as are allowed, each over all of it. */
async function manyScans(side: number): Promise<Buffer> {
  const jpeg = await sharp({ create: { width: side, height: side, channels: 3, background: "#839" } })
    .jpeg({ progressive: true, chromaSubsampling: "4:4:4" })
    .toBuffer();
  const [, second = 0, third = 0] = startsOf(jpeg, "ffda");
  const scanEnd = startsOf(jpeg, "ffc4").find((start) => start > second) ?? third;
  const scans = Array.from({ length: 63 }, (_, index) => {
    const scan = Buffer.from(jpeg.subarray(second, scanEnd));
    // One coefficient of one component, of which nothing is said.
    scan[5] = 1;
    scan.fill(index + 1, 7, 9);
    return scan;
  });
  return Buffer.concat([jpeg.subarray(0, second), ...scans, jpeg.subarray(-2)]);
}

function startsOf(bytes: Buffer, hex: string): number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(hex, 0, "hex"); at >= 0; at = bytes.indexOf(hex, at + 1, "hex")) found.push(at);
  return found;
}

/** A small PNG with as many packed texts as fit into what is decoded. */
async function packedTexts(count: number): Promise<Buffer> {
  const png = await pattern(64, 3).png().toBuffer();
  const text = Buffer.concat([Buffer.from("k\0\0", "latin1"), deflateSync(Buffer.alloc(8e6), { level: 9 })]);
  const named = Buffer.concat([Buffer.from("zTXt", "latin1"), text]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(text.length);
  frame.writeUInt32BE(crc32(named), 4);
  const chunk = Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)]);
  const chunks = Array.from({ length: count }, () => chunk);
  return Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)]);
}

const kinds: readonly [string, bytesAPixel: number, (side: number) => Promise<Buffer>][] = [
  ["PNG, 16 bits, interlaced", 8, (side) => deep(side, true)],
  ["PNG, 16 bits", 1, (side) => deep(side, false)],
  ["PNG, interlaced", 4, (side) => pattern(side, 4).png({ progressive: true }).toBuffer()],
  // As many texts as fit into what is decoded.
  ["PNG with packed texts", 40, packedTexts],
  ["JPEG", 1, (side) => pattern(side, 3).jpeg({ quality: 40 }).toBuffer()],
  ["JPEG, progressive", 6, (side) => progressive(side)],
  ["JPEG of 64 scans", 6, manyScans],
  ["WebP", 1, (side) => pattern(side, 3).webp({ quality: 20, effort: 0 }).toBuffer()],
  ["WebP with a mask", 6, (side) => pattern(side, 4).webp({ quality: 20, effort: 0 }).toBuffer()],
  ["WebP, lossless", 5, (side) => pattern(side, 4).webp({ lossless: true, effort: 0 }).toBuffer()],
];

function deep(side: number, interlaced: boolean): Promise<Buffer> {
  return pattern(side, 4).toColourspace("rgb16").png({ progressive: interlaced }).toBuffer();
}

function progressive(side: number): Promise<Buffer> {
  const options = { progressive: true, quality: 40, chromaSubsampling: "4:4:4" } as const;
  return pattern(side, 3).jpeg(options).toBuffer();
}

async function decode(path: string): Promise<Cost> {
  sharp.cache(false);
  sharp.concurrency(1);
  const reference = readReference(readFileSync(path));
  const peak = () => peakMibOf(process.pid);
  await sharp({ create: { width: 8, height: 8, channels: 3, background: "#fff" } })
    .png()
    .toBuffer();
  const [memory, cpu] = [peak(), process.cpuUsage()];
  const room = new DecodeBudget().of("bench");
  await decodeReference(reference, room, new AbortController().signal, () => undefined);
  const { user, system } = process.cpuUsage(cpu);
  return { cpuMs: (user + system) / 1000, memoryMib: peak() - memory };
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "references-"));
  console.log(`at most ${maxDecodedBytes / mebibyte} MiB an image`);
  try {
    for (const [name, bytesAPixel, make] of kinds) {
      const { bytes, header } = await largest(make, bytesAPixel);
      const path = join(directory, "image");
      writeFileSync(path, bytes);
      const script = fileURLToPath(import.meta.url);
      const { cpuMs, memoryMib } = JSON.parse(
        execFileSync(process.execPath, [script, path], { encoding: "utf8" }),
      ) as Cost;
      console.log(
        [
          name.padEnd(26),
          `${header.width} x ${header.height}`.padEnd(13),
          `file ${(bytes.length / mebibyte).toFixed(1)} MiB`.padEnd(15),
          `counted ${Math.round(header.decodedBytes / mebibyte)} MiB`.padEnd(16),
          `memory ${Math.round(memoryMib)} MiB`.padEnd(15),
          `CPU ${Math.round(cpuMs)} ms`,
        ].join("  "),
      );
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const [path] = process.argv.slice(2);
if (path === undefined) await main();
else console.log(JSON.stringify(await decode(path)));
