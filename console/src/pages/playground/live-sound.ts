import type { SampleForm } from "./wav.ts";

/** Sound that is heard while it arrives. */
export interface LiveSound {
  /** What an audio element plays; undefined where it is heard without one. */
  readonly url: string | undefined;
  push(bytes: Uint8Array<ArrayBuffer>): void;
  /** All of it has come. */
  finish(): void;
  /** It is to be heard no more. */
  close(): void;
}

const mp3 = "audio/mpeg";
/** How long a buffer that is full is left alone until it has been played further. */
const fullBufferMs = 500;

/** Whether the browser plays mp3 in pieces; where it does not, it is heard when all of it is there. */
export function canStreamMp3(): boolean {
  return typeof MediaSource !== "undefined" && MediaSource.isTypeSupported(mp3);
}

/** Mp3 for an audio element, which plays it from the first piece on. */
export class LiveMp3 implements LiveSound {
  readonly url: string;
  readonly #source = new MediaSource();
  readonly #waiting: Uint8Array<ArrayBuffer>[] = [];
  #buffer: SourceBuffer | undefined;
  #isWhole = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.url = URL.createObjectURL(this.#source);
    this.#source.addEventListener("sourceopen", () => this.#open(), { once: true });
  }

  push(bytes: Uint8Array<ArrayBuffer>): void {
    this.#waiting.push(bytes);
    this.#feed();
  }

  finish(): void {
    this.#isWhole = true;
    this.#feed();
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#waiting.length = 0;
    URL.revokeObjectURL(this.url);
  }

  #open(): void {
    this.#buffer = this.#source.addSourceBuffer(mp3);
    this.#buffer.mode = "sequence";
    this.#buffer.addEventListener("updateend", () => this.#feed());
    this.#feed();
  }

  #feed(): void {
    const buffer = this.#buffer;
    if (buffer === undefined || buffer.updating || this.#source.readyState !== "open") return;
    const [next] = this.#waiting;
    if (next === undefined) {
      if (this.#isWhole) this.#source.endOfStream();
      return;
    }
    try {
      buffer.appendBuffer(next);
      this.#waiting.shift();
    } catch (thrown) {
      if (!(thrown instanceof DOMException) || thrown.name !== "QuotaExceededError") throw thrown;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#feed(), fullBufferMs);
    }
  }
}

const bytesPerSample = 2;
const mostSample = 32_768;

/** Samples that are heard one piece after the other. */
export class LivePcm implements LiveSound {
  readonly url = undefined;
  readonly #context: AudioContext;
  readonly #form: SampleForm;
  /** The beginning of a sample whose end has not come yet. */
  #rest: Uint8Array<ArrayBuffer> = new Uint8Array();
  #endsAt = 0;

  constructor(form: SampleForm) {
    this.#form = form;
    this.#context = new AudioContext({ sampleRate: form.rateHz });
  }

  push(bytes: Uint8Array<ArrayBuffer>): void {
    const { channels, rateHz } = this.#form;
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const frames = Math.floor(all.length / (bytesPerSample * channels));
    this.#rest = all.slice(frames * bytesPerSample * channels);
    if (frames === 0) return;
    const piece = this.#context.createBuffer(channels, frames, rateHz);
    const view = new DataView(all.buffer);
    for (let channel = 0; channel < channels; channel += 1) {
      const samples = piece.getChannelData(channel);
      for (let frame = 0; frame < frames; frame += 1) {
        const at = (frame * channels + channel) * bytesPerSample;
        samples[frame] = view.getInt16(at, true) / mostSample;
      }
    }
    const node = this.#context.createBufferSource();
    node.buffer = piece;
    node.connect(this.#context.destination);
    this.#endsAt = Math.max(this.#endsAt, this.#context.currentTime);
    node.start(this.#endsAt);
    this.#endsAt += piece.duration;
  }

  finish(): void {}

  close(): void {
    if (this.#context.state !== "closed") void this.#context.close();
  }
}
