import { lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path, stroke } from "../../shapes.ts";
import { type Drawing, made } from "../drawing.ts";
import { ear, eyeAt, walker } from "./walker.ts";

const elephant: Drawing = {
  habitat: "land",
  width: 230,
  height: 138,
  size: 0.46,
  colors: [lch(0.66, 0.025, 265), lch(0.62, 0.03, 240)],
  draw: (b) => {
    const at = walker(b, {
      length: 116,
      depth: 70,
      legs: 44,
      legWidth: 22,
      neck: [20, -10, 56],
      head: [10, 6, 50],
      sag: -10,
    });
    const [x, y] = at.poll;
    return [
      stroke(`M${at.rump[0] + 4} ${at.rump[1] + 4}q-12 22 -6 44`, b.own(-0.08), 4.4),
      at.body,
      path(
        `M${x + 24} ${y - 10}C${x + 50} ${y + 4} ${x + 36} ${y + 44} ${x + 46} ${y + 66}Q${x + 54} ${y + 76} ${x + 62} ${y + 64}`,
        "none",
        `stroke="${b.own(-0.02)}" stroke-width="15" stroke-linecap="round"`,
      ),
      path(
        `M${x + 16} ${y + 24}Q${x + 22} ${y + 48} ${x + 46} ${y + 44}Q${x + 32} ${y + 38} ${x + 28} ${y + 22}Z`,
        b.ink(made.cream),
      ),
      path(
        `M${x - 4} ${y - 32}Q${x - 52} ${y - 44} ${x - 46} ${y + 10}Q${x - 36} ${y + 40} ${x - 10} ${y + 26}Q${x + 6} ${y} ${x - 4} ${y - 32}Z`,
        b.own(-0.09),
      ),
      path(
        `M${x - 8} ${y - 24}Q${x - 42} ${y - 32} ${x - 38} ${y + 8}Q${x - 30} ${y + 28} ${x - 12} ${y + 18}Q${x} ${y} ${x - 8} ${y - 24}Z`,
        b.ink(made.pink, -0.12),
        opacity(0.4),
      ),
      eyeAt(b, x + 16, y - 6, 3),
    ].join("");
  },
};

const giraffe: Drawing = {
  habitat: "land",
  width: 140,
  height: 200,
  size: 0.58,
  colors: [lch(0.83, 0.12, 78)],
  draw: (b) => {
    const at = walker(b, {
      length: 76,
      depth: 36,
      legs: 66,
      legWidth: 8,
      neck: [26, -84, 15],
      head: [19, 9, 13],
      hooves: made.bark,
      sag: 2,
    });
    const [x, y] = at.poll;
    const [sx, sy] = at.shoulder;
    const patch = b.second(lch(0.56, 0.11, 50));
    const spots = Array.from({ length: 8 }, (_, i) => {
      const part = 0.06 + i * 0.115;
      return ellipse(sx + (x - sx) * part + (i % 2 === 0 ? -3 : 3), sy + (y - sy) * part, 4, 5, patch);
    });
    const flank = [
      [-28, -90],
      [-14, -94],
      [2, -92],
      [18, -94],
      [-22, -78],
      [-6, -80],
      [10, -78],
      [24, -80],
      [-30, -70],
    ].map(([px = 0, py = 0]) =>
      path(
        `M${px - 6} ${py - 4}L${px + 2} ${py - 6}L${px + 6} ${py + 1}L${px} ${py + 6}L${px - 6} ${py + 3}Z`,
        patch,
      ),
    );
    return [
      stroke(`M${at.rump[0] + 2} ${at.rump[1]}q-12 16 -7 40`, b.own(-0.07), 3),
      at.body,
      stroke(`M${x - 6} ${y - 2}L${sx - 10} ${sy - 4}`, patch, 4),
      ...spots,
      ...flank,
      stroke(`M${x - 2} ${y - 6}v-13M${x + 6} ${y - 6}v-12`, b.own(-0.08), 3) +
        circle(x - 2, y - 20, 3, patch) +
        circle(x + 6, y - 19, 3, patch),
      ear(b, x - 6, y - 3, 12, -64),
      eyeAt(b, x + 7, y - 1),
    ].join("");
  },
};

const camel: Drawing = {
  habitat: "desert",
  width: 170,
  height: 136,
  size: 0.38,
  colors: [lch(0.72, 0.1, 68)],
  draw: (b) => {
    const at = walker(b, {
      length: 96,
      depth: 34,
      legs: 54,
      legWidth: 8,
      neck: [34, -26, 16],
      head: [19, 3, 14],
    });
    const [x, y] = at.poll;
    return [
      stroke(`M${at.rump[0] + 2} ${at.rump[1]}q-10 14 -6 34`, b.own(-0.08), 3.4),
      path("M-40 -82Q-26 -122 -8 -84ZM-2 -84Q14 -120 32 -82Z", b.own(-0.03)),
      at.body,
      path("M-20 -90H14L18 -66Q-2 -58 -24 -66Z", b.second(made.red)) +
        stroke("M-23 -70Q-2 -62 17 -70", b.ink(made.gold), 2.4),
      ear(b, x - 4, y - 5, 10, -20),
      eyeAt(b, x + 6, y - 2),
      stroke(`M${at.nose[0] + 1} ${at.nose[1] + 3}h5`, b.own(-0.25), 1.6),
    ].join("");
  },
};

/** Animals of hot lands, by name. */
export const savannaAnimals = { elephant, giraffe, camel };
