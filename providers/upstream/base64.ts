/** Characters that are decoded at a time where they lie in more than one piece: whole groups of four. */
const groupCharacters = 4;

/**
 * Decodes base64 (either alphabet, padded or not) that lies in pieces, into one buffer of exactly its size. Strict:
 * undefined for what Buffer would skip or cut short.
 */
export function decodeBase64(pieces: readonly Uint8Array[]): Buffer | undefined {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const size = decodedBytes(length, paddingOf(pieces));
  if (size === undefined) return undefined;
  const decoded = Buffer.allocUnsafeSlow(size);
  let written = 0;
  let rest = "";
  for (const piece of pieces) {
    const text = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    const missing = rest === "" ? 0 : Math.min(groupCharacters - rest.length, text.length);
    rest += text.toString("latin1", 0, missing);
    if (rest !== "" && rest.length < groupCharacters) continue;
    written += decoded.write(rest, written, "base64");
    const end = text.length - ((text.length - missing) % groupCharacters);
    written += decoded.write(text.toString("latin1", missing, end), written, "base64");
    rest = text.toString("latin1", end);
  }
  written += decoded.write(rest, written, "base64");
  return written === size ? decoded : undefined;
}

/** How many bytes so many characters stand for, `padding` of them "="; undefined where no bytes can. */
function decodedBytes(length: number, padding: number): number | undefined {
  const digits = length - padding;
  const isPossible = padding === 0 || length % groupCharacters === 0;
  return isPossible && digits % groupCharacters !== 1 ? Math.floor((digits * 3) / 4) : undefined;
}

/** "=" at the end of the text, two at most. */
function paddingOf(pieces: readonly Uint8Array[]): number {
  let ending = "";
  for (let index = pieces.length - 1; index >= 0 && ending.length < 2; index -= 1) {
    ending = String.fromCharCode(...(pieces[index]?.subarray(-2) ?? [])) + ending;
  }
  return /={0,2}$/.exec(ending)?.[0].length ?? 0;
}
