/**
 * Runs the Flite command inside WebAssembly, with just enough of WASI preview 1 for it to write one file.
 *
 * - The command sees its arguments and one output file, both in memory: no real file, variable, clock or socket.
 * - Nothing outlives a run: the same module and arguments always give the same bytes.
 */

const errno = { success: 0, badDescriptor: 8, noEntry: 44, illegalSeek: 70 } as const;
const fileType = { characterDevice: 2, directory: 3, regularFile: 4 } as const;
const allRights = (1n << 30n) - 1n;

const directoryDescriptor = 3;
const outputDescriptor = 10;
const directoryName = ".";
const outputName = "out.wav";
const initialOutputBytes = 1 << 18;

/** Thrown by proc_exit to unwind the command. */
class CommandExit extends Error {
  override readonly name = "CommandExit";
  readonly code: number;

  constructor(code: number) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/** A file in memory that is written at a position. */
class OutputFile {
  #bytes = new Uint8Array(initialOutputBytes);
  #length = 0;
  #position = 0;

  write(bytes: Uint8Array): void {
    const end = this.#position + bytes.length;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#position);
    this.#position = end;
    this.#length = Math.max(this.#length, end);
  }

  /** Moves as lseek does: 0 from the start, 1 from here, 2 from the end. Returns the new position. */
  seek(offset: number, whence: number): number {
    const origin = whence === 0 ? 0 : whence === 1 ? this.#position : this.#length;
    this.#position = Math.max(0, origin + offset);
    return this.#position;
  }

  contents(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/** One run: the instance's memory, its arguments and what it has written. */
class FliteRun {
  readonly output = new OutputFile();
  readonly #argv: readonly Uint8Array[];
  #memory: WebAssembly.Memory | undefined;

  constructor(args: readonly string[]) {
    this.#argv = ["flite", ...args].map((argument) => new TextEncoder().encode(`${argument}\0`));
  }

  start(module: WebAssembly.Module): void {
    const imports = { ...this.#argumentCalls(), ...this.#directoryCalls(), ...this.#fileCalls() };
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    const { memory, _start: start } = instance.exports;
    this.#memory = memory as WebAssembly.Memory;
    try {
      (start as () => void)();
    } catch (thrown) {
      if (!(thrown instanceof CommandExit) || thrown.code !== 0) throw thrown;
    }
  }

  /** A new view each time, because a memory that grows detaches its buffer. */
  #bytes(start: number, length: number): Uint8Array {
    return new Uint8Array(this.#buffer(), start, length);
  }

  #view(): DataView {
    return new DataView(this.#buffer());
  }

  #buffer(): ArrayBuffer {
    if (this.#memory === undefined) throw new Error("called before the start");
    return this.#memory.buffer;
  }

  #argumentCalls() {
    return {
      args_sizes_get: (countAt: number, bytesAt: number) => {
        this.#view().setUint32(countAt, this.#argv.length, true);
        this.#view().setUint32(
          bytesAt,
          this.#argv.reduce((total, argument) => total + argument.length, 0),
          true,
        );
        return errno.success;
      },
      args_get: (pointersAt: number, bytesAt: number) => {
        let next = bytesAt;
        for (const [index, argument] of this.#argv.entries()) {
          this.#view().setUint32(pointersAt + index * 4, next, true);
          this.#bytes(next, argument.length).set(argument);
          next += argument.length;
        }
        return errno.success;
      },
      clock_time_get: (_clock: number, _precision: bigint, timeAt: number) => {
        this.#view().setBigUint64(timeAt, 0n, true);
        return errno.success;
      },
      proc_exit: (code: number) => {
        throw new CommandExit(code);
      },
    };
  }

  #directoryCalls() {
    return {
      fd_prestat_get: (descriptor: number, statAt: number) => {
        if (descriptor !== directoryDescriptor) return errno.badDescriptor;
        this.#view().setUint8(statAt, 0);
        this.#view().setUint32(statAt + 4, directoryName.length, true);
        return errno.success;
      },
      fd_prestat_dir_name: (_descriptor: number, nameAt: number, length: number) => {
        this.#bytes(nameAt, length).set(new TextEncoder().encode(directoryName).subarray(0, length));
        return errno.success;
      },
      path_open: (
        _directory: number,
        _lookup: number,
        pathAt: number,
        pathLength: number,
        _open: number,
        _rights: bigint,
        _inheriting: bigint,
        _flags: number,
        descriptorAt: number,
      ) => {
        if (new TextDecoder().decode(this.#bytes(pathAt, pathLength)) !== outputName) return errno.noEntry;
        this.#view().setUint32(descriptorAt, outputDescriptor, true);
        return errno.success;
      },
    };
  }

  #fileCalls() {
    return {
      fd_close: () => errno.success,
      fd_fdstat_set_flags: () => errno.success,
      fd_fdstat_get: (descriptor: number, statAt: number) => {
        this.#bytes(statAt, 24).fill(0);
        this.#view().setUint8(statAt, typeOfDescriptor(descriptor));
        this.#view().setBigUint64(statAt + 8, allRights, true);
        this.#view().setBigUint64(statAt + 16, allRights, true);
        return errno.success;
      },
      fd_read: (_descriptor: number, _vectors: number, _count: number, readAt: number) => {
        this.#view().setUint32(readAt, 0, true);
        return errno.success;
      },
      fd_seek: (descriptor: number, offset: bigint, whence: number, positionAt: number) => {
        if (descriptor !== outputDescriptor) return errno.illegalSeek;
        const position = this.output.seek(Number(offset), whence);
        this.#view().setBigUint64(positionAt, BigInt(position), true);
        return errno.success;
      },
      fd_write: (descriptor: number, vectorsAt: number, count: number, writtenAt: number) => {
        let written = 0;
        for (let index = 0; index < count; index++) {
          const start = this.#view().getUint32(vectorsAt + index * 8, true);
          const length = this.#view().getUint32(vectorsAt + index * 8 + 4, true);
          if (descriptor === outputDescriptor) this.output.write(this.#bytes(start, length));
          written += length;
        }
        this.#view().setUint32(writtenAt, written, true);
        return errno.success;
      },
    };
  }
}

function typeOfDescriptor(descriptor: number): number {
  if (descriptor === directoryDescriptor) return fileType.directory;
  return descriptor === outputDescriptor ? fileType.regularFile : fileType.characterDevice;
}

/**
 * Runs the command with these arguments (an output path is added) and returns the WAV file that it wrote. Blocks the
 * thread until it is done. Throws when the command fails or traps.
 */
export function runFlite(module: WebAssembly.Module, args: readonly string[]): Uint8Array {
  const run = new FliteRun([...args, "-o", outputName]);
  run.start(module);
  return run.output.contents();
}
