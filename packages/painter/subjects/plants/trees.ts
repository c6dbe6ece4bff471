import { type Lch, lch } from "../../color/color.ts";
import { circle, ellipse, num, path, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";
import { leafyCrown } from "./leafy-crown.ts";

const seasonal: readonly Lch[] = [lch(0.6, 0.14, 142)];

function trunk(b: Brush, height: number, width: number): string {
  return (
    path(
      `M${-width} 0Q${-width * 0.5} ${-height * 0.3} ${-width * 0.45} ${-height}H${width * 0.45}Q${width * 0.5} ${-height * 0.3} ${width} 0Z`,
      b.ink(made.bark),
    ) +
    path(
      `M${width * 0.1} 0Q${width * 0.1} ${-height * 0.3} ${width * 0.1} ${-height}H${width * 0.45}Q${width * 0.5} ${-height * 0.3} ${width} 0Z`,
      b.ink(made.bark, -0.06),
    )
  );
}

const roundTree: readonly (readonly [number, number, number])[] = [
  [-34, -88, 28],
  [34, -86, 28],
  [-20, -118, 28],
  [22, -118, 29],
  [0, -142, 25],
  [0, -96, 34],
];

/** The leaves' colour: the season's, unless the prompt named one. */
function foliage(b: Brush): Lch {
  return b.main === seasonal[0] ? b.random.pick(b.leaves) : b.main;
}

const tree: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 130,
  height: 168,
  size: 0.46,
  colors: seasonal,
  draw: (b) =>
    trunk(b, 84, 13) +
    stroke("M0 -56L-26 -84M0 -64L24 -88", b.ink(made.bark), 6) +
    leafyCrown(b, foliage(b), roundTree),
};

const pine: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 100,
  height: 180,
  size: 0.46,
  colors: [made.pine, lch(0.5, 0.09, 150)],
  draw: (b) => {
    const tiers = [0, 1, 2, 3, 4].map((tier) => {
      const [y, half, tall] = [-20 - tier * 30, 48 - tier * 8, 50 - tier * 2.5];
      const left = `M0 ${y - tall}Q${-half * 0.35} ${y - tall * 0.3} ${-half} ${y}Q${-half * 0.5} ${y + 5} 0 ${y + 5}Z`;
      const right = `M0 ${y - tall}Q${half * 0.35} ${y - tall * 0.3} ${half} ${y}Q${half * 0.5} ${y + 5} 0 ${y + 5}Z`;
      const snow = b.winter
        ? path(
            `M0 ${y - tall}Q${-half * 0.35} ${y - tall * 0.3} ${-half} ${y}Q${-half * 0.55} ${y - 9} ${-half * 0.25} ${y - 13}Q0 ${y - 18} ${half * 0.3} ${y - 12}Q${half * 0.6} ${y - 6} ${half} ${y}Q${half * 0.35} ${y - tall * 0.3} 0 ${y - tall}Z`,
            b.ink(made.snow),
          )
        : "";
      return path(left, b.own(0.015 * tier)) + path(right, b.own(-0.06 + 0.015 * tier)) + snow;
    });
    return stroke("M0 0V-30", b.ink(made.bark), 11) + tiers.join("");
  },
};

const palm: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 160,
  height: 185,
  size: 0.5,
  colors: [lch(0.6, 0.14, 148), lch(0.56, 0.12, 155)],
  draw: (b) => {
    const fronds = [-196, -168, -138, -104, -62, -30, -2, 20].map((angle, index) => {
      const a = (angle * Math.PI) / 180;
      const [ex, ey] = [18 + Math.cos(a) * 74, -158 + Math.sin(a) * 40 + 34];
      const [mx, my] = [18 + Math.cos(a) * 44, -158 + Math.sin(a) * 52 - 12];
      const d = `M18 -158Q${num(mx)} ${num(my - 11)} ${num(ex)} ${num(ey)}Q${num(mx - 4)} ${num(my + 17)} 18 -158Z`;
      return path(d, b.own(index % 2 === 0 ? 0 : -0.06));
    });
    const rings = Array.from({ length: 12 }, (_, i) => {
      const part = (i + 1) / 13;
      const x = -4 + 22 * part ** 1.7;
      return `M${num(x - 5)} ${num(-156 * part)}q5 3 9 0`;
    });
    return [
      path("M-11 0Q-6 -90 13 -158H21Q8 -90 9 0Z", b.ink(made.wood, 0.04)),
      stroke(rings.join(""), b.ink(made.bark), 1.6),
      ...fronds,
      circle(12, -152, 7, b.ink(made.bark)) +
        circle(25, -150, 7, b.ink(made.bark, 0.05)) +
        circle(19, -145, 7, b.ink(made.bark, -0.04)),
    ].join("");
  },
};

const birch: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 100,
  height: 172,
  size: 0.46,
  colors: seasonal,
  draw: (b) => {
    const marks = Array.from({ length: 11 }, () => {
      const y = b.random.range(-100, -6);
      return `M${num(b.random.range(-6, 0))} ${num(y)}h${num(b.random.range(3, 6))}`;
    });
    return [
      path("M-8 0Q-5 -70 -3 -130H3Q5 -70 8 0Z", b.ink(made.white, -0.03)),
      stroke(marks.join(""), b.ink(made.dark), 2.6),
      stroke("M0 -70L-20 -96M0 -84L20 -108", b.ink(made.white, -0.06), 3.4),
      leafyCrown(b, foliage(b), [
        [-16, -98, 20],
        [18, -104, 21],
        [-8, -128, 22],
        [10, -140, 20],
        [0, -156, 15],
      ]),
    ].join("");
  },
};

const blossom: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 150,
  height: 160,
  size: 0.46,
  colors: [lch(0.83, 0.1, 355), lch(0.87, 0.075, 2)],
  draw: (b) =>
    [
      path(
        "M-12 0Q-4 -30 -8 -56Q-22 -78 -44 -88L-42 -92Q-16 -84 -4 -66Q-2 -92 8 -112L14 -110Q6 -84 6 -62Q22 -82 46 -88L48 -83Q22 -74 10 -48Q8 -24 14 0Z",
        b.ink(made.bark, -0.06),
      ),
      leafyCrown(b, b.main, [
        [-48, -92, 27],
        [48, -90, 27],
        [-26, -116, 30],
        [26, -118, 30],
        [0, -138, 27],
        [0, -100, 24],
      ]),
      ...Array.from({ length: 10 }, () =>
        ellipse(b.random.range(-70, 70), b.random.range(-60, 4), 3, 1.8, b.own(0.03)),
      ),
    ].join(""),
};

function branches(x: number, y: number, angle: number, length: number, b: Brush): string {
  if (length < 9) return "";
  const [ex, ey] = [x + Math.cos(angle) * length, y + Math.sin(angle) * length];
  const spread = () => b.random.range(0.3, 0.62);
  const shorter = () => length * b.random.range(0.68, 0.8);
  return (
    stroke(
      `M${num(x)} ${num(y)}L${num(ex)} ${num(ey)}`,
      b.own(length < 20 ? 0.05 : 0),
      Math.max(1.4, length * 0.17),
    ) +
    branches(ex, ey, angle - spread(), shorter(), b) +
    branches(ex, ey, angle + spread(), shorter(), b)
  );
}

const baretree: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 130,
  height: 160,
  size: 0.44,
  reach: { left: 14, right: 14, top: 24 },
  colors: [made.bark, made.dark],
  draw: (b) => path("M-12 0Q-4 -18 -4 -42H4Q4 -18 12 0Z", b.own()) + branches(0, -36, -Math.PI / 2, 40, b),
};

const willow: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 160,
  height: 160,
  size: 0.46,
  colors: [lch(0.7, 0.13, 128)],
  draw: (b) => {
    const strands = Array.from({ length: 34 }, (_, i) => {
      const x = -70 + i * 4.2;
      const top = -150 + (x / 70) ** 2 * 46;
      const end = b.random.range(-52, -14);
      return stroke(
        `M${num(x * 0.55)} ${num(top)}Q${num(x * 1.05)} ${num(top + 14)} ${num(x * 1.08)} ${num(end)}`,
        b.own(b.random.range(-0.1, 0.06)),
        4.4,
      );
    });
    return (
      trunk(b, 110, 13) +
      path("M-66 -96Q-70 -152 0 -156Q70 -152 66 -96Q30 -116 0 -112T-66 -96Z", b.own(-0.04)) +
      strands.join("")
    );
  },
};

/** Trees, by name. */
export const trees = { tree, pine, palm, birch, blossom, baretree, willow };
