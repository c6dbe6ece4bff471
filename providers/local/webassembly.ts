declare global {
  /** The part of the WebAssembly interface in use; TypeScript itself declares it for browsers only. */
  namespace WebAssembly {
    /** Compiled code; threads may share it. */
    class Module {
      private readonly compiled: true;
    }

    /** Code with a memory of its own. */
    class Instance {
      constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
      readonly exports: Readonly<Record<string, unknown>>;
    }

    /** The memory of an instance; growing it replaces the buffer. */
    interface Memory {
      readonly buffer: ArrayBuffer;
    }

    /** Compiles off the calling thread. */
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

export {};
