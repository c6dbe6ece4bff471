/**
 * The bytes of an image of the interface. They are shown by an `img` alone: there an SVG's scripts don't run and nothing
 * that it names is loaded.
 */
export function imageBlob({ b64_json, media_type }: { b64_json: string; media_type: string }): Blob {
  const bytes = Uint8Array.from(atob(b64_json), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: media_type });
}
