import type { Segment } from "../flite-worker.ts";

/** In place of the engine: a worker that misbehaves as the text says, and else answers with one sample. */
export function speakSegment({ text }: Segment): Int16Array<ArrayBuffer> {
  if (text === "crash") process.exit(1);
  if (text === "throw") throw new Error("the engine's own words");
  while (text === "hang");
  return new Int16Array(1);
}
