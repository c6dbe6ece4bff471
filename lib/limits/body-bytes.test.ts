import fc from "fast-check";
import { expect, test } from "vitest";
import { BodyBytes } from "./body-bytes.ts";

/** Pieces of a connection: each in a buffer of its own that is up to a thousand times its size. */
const piece = fc.record({
  bytes: fc.oneof(fc.integer({ min: 1, max: 9000 }), fc.integer({ min: 1, max: 200_000 })),
  slack: fc.integer({ min: 0, max: 60_000 }),
});

test("are what came, in any range, and take at most twice that and a block", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.nat(), fc.nat(), (pieces, one, other) => {
      const body = new BodyBytes();
      const all: Buffer[] = [];
      for (const [index, { bytes, slack }] of pieces.entries()) {
        const buffer = Buffer.alloc(bytes + slack, index + 1).subarray(0, bytes);
        all.push(Buffer.from(buffer));
        body.append(buffer);
      }
      const whole = Buffer.concat(all);
      expect(body.size).toBe(whole.length);
      expect(body.whole().equals(whole)).toBe(true);
      expect(body.head(5).equals(whole.subarray(0, 5))).toBe(true);
      const [from = 0, until = 0] = [one, other].map((at) => at % (whole.length + 1)).sort((a, b) => a - b);
      expect(Buffer.concat([...body.pieces(from, until)]).equals(whole.subarray(from, until))).toBe(true);
      expect([...body.pieces()].every(({ length }) => length <= 64 << 10)).toBe(true);
      const held = new Set([...body.pieces()].map(({ buffer }) => buffer));
      const heldBytes = [...held].reduce((sum, { byteLength }) => sum + byteLength, 0);
      expect(heldBytes).toBeLessThanOrEqual(2 * whole.length + (64 << 10));
    }),
  );
});
