import { workerData } from "node:worker_threads";
import { move } from "piscina";
import { runFlite } from "./flite-wasi.ts";
import { resample16To24 } from "./resample.ts";
import { decodeWav } from "./wav.ts";

/** What the engine speaks at a time. */
export interface Segment {
  /** Of textSegments. */
  readonly text: string;
  /** One of the engine's built-in voices. */
  readonly voice: string;
  /** 0.25 to 4. */
  readonly speed: number;
}

/** What a thread is started with. */
export interface WorkerSetup {
  /** The engine, compiled once for all threads. */
  readonly module: WebAssembly.Module;
}

const engineRateHz = 16_000;
/**
 * What makes the voices equally loud: at -18 dB of full scale, silences left out, which leaves the loudest peaks of the
 * quietest voice whole.
 */
const gainByVoice: Readonly<Record<string, number>> = { slt: 0.71, rms: 1.38, awb: 1.2 };
const loudest = 32_767;

/** Runs in a thread of SegmentPool: one segment as mono samples at 24 kHz. A pure function; throws when the engine fails. */
export function speakSegment({ text, voice, speed }: Segment): Int16Array<ArrayBuffer> {
  const { module } = workerData as WorkerSetup;
  const stretch = `duration_stretch=${1 / speed}`;
  const wav = decodeWav(runFlite(module, ["-voice", voice, "--setf", stretch, "-t", text]));
  if (wav.channels !== 1 || wav.sampleRateHz !== engineRateHz) throw new Error("unexpected form of audio");
  const samples = resample16To24(wav.samples);
  amplify(samples, gainByVoice[voice] ?? 1);
  return move(samples) as Int16Array<ArrayBuffer>;
}

function amplify(samples: Int16Array, gain: number): void {
  for (let index = 0; index < samples.length; index++) {
    const sample = Math.round((samples[index] as number) * gain);
    samples[index] = Math.max(-loudest, Math.min(loudest, sample));
  }
}
