/** An endpoint of a catalogue file as its provider checks it. */
export interface DeclaredEndpoint {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly passthrough: readonly string[];
  /** What it is said to do with images; undefined where it speaks. */
  readonly image:
    | {
        readonly sizes:
          | { readonly kind: "list"; readonly sizes: readonly unknown[] }
          | { readonly kind: "grid" };
        readonly maxN: number;
        readonly qualities: readonly string[];
        readonly maxReferences: number;
        readonly mask: boolean;
        readonly streaming: boolean;
      }
    | undefined;
}

/** Something in the settings of an endpoint that can't be meant; the message says what, in one line. */
export class SettingsFault extends Error {
  override readonly name = "SettingsFault";
}

/**
 * Makes of an endpoint's settings as they are written those that calls carry. `readFile` gives the text of a file beside
 * the catalogue file, by its name. Throws SettingsFault.
 */
export type ReadSettings = (
  endpoint: DeclaredEndpoint,
  readFile: (name: string) => Promise<string>,
) => Promise<Readonly<Record<string, unknown>>>;
