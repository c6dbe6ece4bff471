import type { Lch } from "../../color/color.ts";
import { circle, ellipse, opacity } from "../../shapes.ts";
import type { Brush } from "../drawing.ts";

/** A leafy crown: discs in three tones, lit from the upper left, and single leaves. */
export function leafyCrown(
  b: Brush,
  color: Lch,
  discs: readonly (readonly [number, number, number])[],
): string {
  const tone = (by: number, shift: number, size: number) =>
    discs.map(([x, y, r]) => circle(x - r * shift, y - r * shift * 1.2, r * size, b.ink(color, by))).join("");
  const leaves = discs.flatMap(([x, y, r]) =>
    Array.from({ length: 7 }, () => {
      const angle = b.random.range(0, Math.PI * 2);
      const reach = r * Math.sqrt(b.random.next()) * 0.92;
      return ellipse(
        x + Math.cos(angle) * reach,
        y + Math.sin(angle) * reach,
        3.4,
        2.2,
        b.ink(color, b.random.pick([0.09, -0.1, 0.05])),
        opacity(0.7),
      );
    }),
  );
  return tone(-0.07, -0.1, 1) + tone(0, 0.06, 0.9) + tone(0.05, 0.28, 0.55) + leaves.join("");
}
