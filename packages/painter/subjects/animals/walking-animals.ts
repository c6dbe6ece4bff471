import { lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path, polygon, stroke } from "../../shapes.ts";
import { type Drawing, made } from "../drawing.ts";
import { ear, eyeAt, walker } from "./walker.ts";

const cow: Drawing = {
  habitat: "land",
  width: 160,
  height: 104,
  size: 0.34,
  colors: [made.white, lch(0.55, 0.1, 48), made.white],
  draw: (b) => {
    const at = walker(b, {
      length: 106,
      depth: 46,
      legs: 34,
      legWidth: 10,
      neck: [16, -18, 27],
      head: [20, 11, 22],
      hooves: made.dark,
    });
    const [x, y] = at.poll;
    const spots = b.second(b.main === made.white ? made.black : made.white);
    return [
      stroke(`M${at.rump[0] + 2} ${at.rump[1] - 4}q-14 20 -9 44`, b.own(-0.05), 3.4) +
        ellipse(at.rump[0] - 8, at.rump[1] + 44, 4, 8, b.ink(made.dark)),
      ellipse(-20, -30, 12, 9, b.ink(made.pink)),
      at.body,
      path(
        "M-36 -78Q-10 -84 -8 -66Q-14 -50 -30 -54Q-46 -60 -36 -78ZM14 -80Q34 -82 32 -64Q20 -48 10 -58Q4 -70 14 -80ZM-4 -46Q8 -50 8 -40Q0 -32 -6 -38Z",
        spots,
      ),
      path(
        `M${x - 5} ${y - 11}Q${x + 8} ${y - 14} ${x + 12} ${y - 4}Q${x + 2} ${y + 6} ${x - 6} ${y + 2}Z`,
        spots,
      ),
      ellipse(at.nose[0] + 3, at.nose[1] + 1, 11, 10, b.ink(made.pink)),
      circle(at.nose[0] + 6, at.nose[1] - 2, 1.6, b.ink(made.bark)),
      stroke(`M${x - 2} ${y - 11}q-3 -12 5 -15M${x + 9} ${y - 10}q3 -10 10 -11`, b.ink(made.cream), 4),
      ear(b, x - 9, y - 5, 15, -70),
      eyeAt(b, x + 9, y - 1, 2.7),
    ].join("");
  },
};

const sheep: Drawing = {
  habitat: "land",
  width: 130,
  height: 92,
  size: 0.27,
  colors: [made.white, lch(0.9, 0.03, 80)],
  draw: (b) => {
    const wool: string[] = [];
    for (let i = 0; i < 14; i++) {
      const a = (i / 14) * Math.PI * 2;
      wool.push(
        circle(Math.cos(a) * 38 - 6, -50 + Math.sin(a) * 22, 16, b.own(Math.sin(a) > 0.2 ? -0.07 : 0)),
      );
    }
    const legs = [-32, -18, 10, 24].map((x, i) =>
      stroke(`M${x} -28V-3`, b.ink(made.dark, i % 2 === 0 ? 0 : 0.08), 7),
    );
    return [
      ...legs,
      ...wool,
      ellipse(-6, -52, 42, 25, b.own()),
      path("M40 -74Q58 -74 60 -58Q62 -40 50 -38Q38 -38 36 -56Z", b.ink(made.dark)),
      ellipse(33, -66, 11, 5, b.ink(made.dark, 0.05), 'transform="rotate(-20 33 -66)"'),
      circle(40, -76, 9, b.own()) + circle(49, -77, 8, b.own(-0.02)) + circle(31, -74, 8, b.own()),
      circle(51, -58, 3, b.ink(made.white)) + circle(52, -58, 1.6, b.ink(made.black)),
    ].join("");
  },
};

const pig: Drawing = {
  habitat: "land",
  width: 130,
  height: 84,
  size: 0.26,
  colors: [lch(0.82, 0.09, 8)],
  draw: (b) => {
    const at = walker(b, {
      length: 92,
      depth: 48,
      legs: 20,
      legWidth: 11,
      neck: [12, -4, 36],
      head: [10, 5, 30],
      sag: -8,
    });
    const [x, y] = at.poll;
    return [
      stroke(`M${at.rump[0] + 2} ${at.rump[1]}c-14 -4 -12 -16 -4 -14c7 3 0 13 -8 8`, b.own(-0.06), 3.4),
      at.body,
      ellipse(at.nose[0] + 14, at.nose[1] + 2, 7, 10, b.own(-0.08)),
      circle(at.nose[0] + 14, at.nose[1] - 2, 1.6, b.own(-0.3)) +
        circle(at.nose[0] + 14, at.nose[1] + 5, 1.6, b.own(-0.3)),
      path(`M${x - 8} ${y - 12}L${x - 3} ${y - 31}L${x + 11} ${y - 15}Z`, b.own(-0.07)),
      eyeAt(b, x + 14, y - 3, 2.6),
    ].join("");
  },
};

const deer: Drawing = {
  habitat: "forest",
  width: 150,
  height: 160,
  size: 0.44,
  colors: [lch(0.58, 0.1, 55), lch(0.52, 0.09, 48)],
  draw: (b) => {
    const at = walker(b, {
      length: 82,
      depth: 32,
      legs: 50,
      legWidth: 6.5,
      neck: [18, -38, 16],
      head: [18, 8, 13],
      hooves: made.dark,
      sag: 3,
    });
    const [x, y] = at.poll;
    const antler = (s: number) =>
      `M${x + s * 3} ${y - 7}C${x + s * 6} ${y - 26} ${x + s * 22} ${y - 26} ${x + s * 22} ${y - 50}M${x + s * 8} ${y - 21}Q${x + s * 3} ${y - 32} ${x + s * 7} ${y - 42}M${x + s * 16} ${y - 28}Q${x + s * 30} ${y - 30} ${x + s * 33} ${y - 42}`;
    return [
      stroke(antler(1) + antler(-1), b.ink(made.bark, 0.1), 3.8),
      at.body,
      ellipse(at.rump[0] + 3, at.rump[1] + 1, 6, 8, b.ink(made.white)),
      ear(b, x - 5, y - 5, 17, -58),
      ear(b, x + 4, y - 6, 14, 40, -0.02),
      ...[-24, -12, 0, 10, -18, -4].map((dx, i) =>
        circle(dx, -74 + (i % 3) * 6, 2, b.ink(made.cream), opacity(0.8)),
      ),
      path(
        `M${at.shoulder[0] + 8} ${at.shoulder[1] + 4}Q${x + 4} ${y + 18} ${x + 8} ${y + 6}Q${at.shoulder[0] + 22} ${at.shoulder[1] - 6} ${at.shoulder[0] + 8} ${at.shoulder[1] + 4}Z`,
        b.ink(made.cream),
        opacity(0.7),
      ),
      circle(at.nose[0] + 5, at.nose[1], 3, b.ink(made.black)),
      eyeAt(b, x + 7, y, 2.4),
    ].join("");
  },
};

const dinosaur: Drawing = {
  habitat: "land",
  width: 230,
  height: 150,
  size: 0.46,
  colors: [lch(0.68, 0.12, 150), lch(0.66, 0.12, 200), lch(0.68, 0.12, 40)],
  draw: (b) => {
    const at = walker(b, {
      length: 104,
      depth: 56,
      legs: 34,
      legWidth: 19,
      neck: [46, -62, 23],
      head: [17, 4, 21],
      sag: -18,
    });
    const [x, y] = at.poll;
    const plates = [
      [-44, -86],
      [-26, -98],
      [-6, -103],
      [14, -100],
      [32, -92],
    ].map(([px = 0, py = 0]) =>
      polygon(`${px - 9},${py + 8} ${px - 2},${py - 11} ${px + 9},${py + 7}`, b.second(made.orange)),
    );
    return [
      path("M-40 -82Q-80 -76 -116 -26Q-84 -40 -40 -40Z", b.own(-0.02)),
      ...plates,
      at.body,
      ...[
        [-20, -70, 7],
        [4, -76, 9],
        [22, -62, 6],
        [-34, -58, 5],
      ].map(([cx = 0, cy = 0, r = 0]) => circle(cx, cy, r, b.own(-0.08))),
      eyeAt(b, x + 8, y - 3, 3),
      path(
        `M${at.nose[0] - 2} ${at.nose[1] + 5}q6 3 10 -2`,
        "none",
        `stroke="${b.own(-0.3)}" stroke-width="1.8" stroke-linecap="round"`,
      ),
    ].join("");
  },
};

/** Animals that walk on four legs, by name. */
export const walkingAnimals = { cow, sheep, pig, deer, dinosaur };
