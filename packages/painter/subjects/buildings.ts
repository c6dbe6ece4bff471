import { lch } from "../color/color.ts";
import { circle, path, polygon, rect, stroke } from "../shapes.ts";
import { type Brush, type Drawing, made } from "./drawing.ts";

const walls = [made.cream, lch(0.9, 0.06, 60), lch(0.86, 0.06, 25), lch(0.9, 0.03, 220)];

function windowAt(b: Brush, x: number, y: number, width: number, height: number): string {
  const bar = b.ink(made.white);
  return (
    rect(x - width / 2 - 2, y - 2, width + 4, height + 4, bar, 1.5) +
    rect(x - width / 2, y, width, height, b.pane()) +
    rect(x - 0.8, y, 1.6, height, bar) +
    rect(x - width / 2, y + height / 2 - 0.8, width, 1.6, bar)
  );
}

/** Snow on a roof, or nothing. */
function snowOn(b: Brush, d: string): string {
  return b.winter ? path(d, b.ink(made.snow)) : "";
}

const house: Drawing = {
  habitat: "land",
  width: 150,
  height: 128,
  size: 0.34,
  colors: walls,
  draw: (b) =>
    [
      rect(28, -122, 15, 40, b.ink(made.brick)),
      rect(26, -126, 19, 6, b.ink(made.brick, -0.08)),
      rect(-56, -64, 112, 64, b.own()),
      rect(20, -64, 36, 64, b.own(-0.08)),
      polygon("-70,-60 -42,-112 46,-112 70,-60", b.second(made.tile)),
      polygon("20,-60 14,-112 46,-112 70,-60", b.second(made.tile, -0.07)),
      snowOn(b, "M-64 -70L-42 -112H46L64 -70Q56 -82 46 -74T20 -78T-8 -74T-36 -80T-64 -70Z"),
      rect(-70, -62, 140, 5, b.ink(made.white, -0.05), 2),
      windowAt(b, -34, -46, 20, 22),
      windowAt(b, 38, -46, 20, 22),
      rect(-10, -42, 22, 42, b.ink(made.wood, -0.12), 2),
      circle(7, -20, 1.8, b.ink(made.gold)),
      rect(-16, -3, 34, 5, b.ink(made.stone), 1),
      windowAt(b, 0, -92, 16, 15),
    ].join(""),
};

const cabin: Drawing = {
  habitat: "forest",
  width: 150,
  height: 118,
  size: 0.3,
  colors: [made.wood, lch(0.5, 0.08, 50)],
  draw: (b) => {
    const logs = [0, 1, 2, 3, 4, 5].map((i) =>
      rect(-56, -60 + i * 10, 112, 9, b.own(i % 2 === 0 ? 0 : -0.05), 4),
    );
    return [
      rect(-46, -114, 14, 46, b.ink(made.stone, -0.12)),
      ...logs,
      polygon("-74,-54 0,-108 74,-54 66,-48 0,-96 -66,-48", b.second(made.bark, -0.06)),
      polygon("-64,-56 0,-100 64,-56", b.own(-0.08)),
      snowOn(b, "M-74 -54L0 -108L74 -54Q62 -54 54 -64T28 -80T0 -94T-30 -78T-56 -62T-74 -54Z"),
      windowAt(b, -32, -44, 22, 20),
      windowAt(b, 0, -80, 14, 13),
      rect(10, -44, 24, 44, b.ink(made.bark), 2),
      circle(29, -22, 1.8, b.ink(made.gold)),
    ].join("");
  },
};

const church: Drawing = {
  habitat: "land",
  width: 130,
  height: 180,
  size: 0.42,
  colors: [made.white, made.cream],
  draw: (b) =>
    [
      rect(-26, -66, 90, 66, b.own(-0.03)),
      polygon("-26,-64 -10,-98 60,-98 70,-64", b.second(made.slate)),
      rect(-54, -112, 40, 112, b.own()),
      rect(-30, -112, 16, 112, b.own(-0.07)),
      polygon("-60,-110 -34,-168 -34,-110", b.second(made.slate, 0.04)),
      polygon("-34,-168 -8,-110 -34,-110", b.second(made.slate, -0.05)),
      stroke("M-34 -168V-184M-40 -178H-28", b.ink(made.dark), 2.4),
      circle(-34, -92, 8, b.ink(made.dark)) + circle(-34, -92, 6, b.ink(made.cream)),
      path("M-44 0V-26A10 12 0 0 1 -24 -26V0Z", b.ink(made.wood, -0.1)),
      ...[-2, 22, 46].map((x) => path(`M${x - 6} -20V-42A6 8 0 0 1 ${x + 6} -42V-20Z`, b.pane())),
      path("M-40 -58V-72A6 8 0 0 1 -28 -72V-58Z", b.pane()),
    ].join(""),
};

const mosque: Drawing = {
  habitat: "land",
  width: 210,
  height: 160,
  size: 0.42,
  colors: [made.white, made.cream, lch(0.88, 0.05, 60)],
  draw: (b) => {
    const minaret = (x: number) =>
      rect(x - 6, -128, 12, 128, b.own(-0.03)) +
      rect(x - 9, -100, 18, 5, b.own(-0.1)) +
      rect(x - 9, -60, 18, 5, b.own(-0.1)) +
      path(`M${x - 8} -128Q${x - 8} -142 ${x} -152Q${x + 8} -142 ${x + 8} -128Z`, b.second(made.teal));
    const dome = (x: number, y: number, r: number) =>
      path(
        `M${x - r} ${y}C${x - r * 1.25} ${y - r * 0.9} ${x - r * 0.35} ${y - r * 1.15} ${x} ${y - r * 1.55}C${x + r * 0.35} ${y - r * 1.15} ${x + r * 1.25} ${y - r * 0.9} ${x + r} ${y}Z`,
        b.second(made.teal),
      ) +
      path(
        `M${x + r * 0.2} ${y}C${x + r * 0.6} ${y - r * 0.9} ${x + r * 0.2} ${y - r * 1.2} ${x} ${y - r * 1.55}C${x + r * 0.35} ${y - r * 1.15} ${x + r * 1.25} ${y - r * 0.9} ${x + r} ${y}Z`,
        b.second(made.teal, -0.07),
      ) +
      stroke(`M${x} ${y - r * 1.5}v-12`, b.ink(made.gold), 2);
    const arch = (x: number, half: number, tall: number) =>
      path(
        `M${x - half} 0V${-tall * 0.6}Q${x - half} ${-tall * 0.85} ${x} ${-tall}Q${x + half} ${-tall * 0.85} ${x + half} ${-tall * 0.6}V0Z`,
        b.lit ? b.pane() : b.own(-0.3),
      );
    return [
      minaret(-92),
      minaret(92),
      rect(-72, -52, 144, 52, b.own()),
      dome(-46, -52, 17),
      dome(46, -52, 17),
      rect(-34, -70, 68, 70, b.own(-0.03)),
      dome(0, -70, 34),
      arch(0, 17, 54),
      arch(-52, 9, 34),
      arch(52, 9, 34),
    ].join("");
  },
};

const barn: Drawing = {
  habitat: "land",
  width: 170,
  height: 120,
  size: 0.34,
  colors: [lch(0.52, 0.17, 27)],
  draw: (b) =>
    [
      rect(48, -112, 28, 112, b.ink(made.metal)),
      path("M46 -112Q62 -136 78 -112Z", b.ink(made.steel)),
      polygon("-66,0 -66,-60 -44,-92 0,-112 44,-92 62,-60 62,0", b.own()),
      path(
        "M-72 -56L-46 -94L0 -116L46 -94L68 -56",
        "none",
        `stroke="${b.second(made.slate)}" stroke-width="9" stroke-linejoin="round"`,
      ),
      snowOn(b, "M-76 -58L-48 -98L0 -121L48 -98L72 -58L64 -62L42 -90L0 -110L-42 -90L-66 -60Z"),
      rect(-28, -50, 56, 50, b.own(-0.08)),
      path(
        "M-28 0V-50H28V0M-28 -50L0 0L28 -50M0 -50V0",
        "none",
        `stroke="${b.ink(made.white)}" stroke-width="3.4"`,
      ),
      rect(-12, -88, 24, 20, b.pane()),
      path("M-12 -88H12V-68H-12ZM0 -88V-68", "none", `stroke="${b.ink(made.white)}" stroke-width="3"`),
    ].join(""),
};

const tent: Drawing = {
  habitat: "forest",
  width: 130,
  height: 84,
  size: 0.24,
  reach: { left: 13, right: 17 },
  colors: [made.orange, lch(0.66, 0.15, 40), made.teal],
  draw: (b) =>
    [
      polygon("-62,0 -10,-80 64,0", b.own(-0.08)),
      polygon("-62,0 -10,-80 28,0", b.own()),
      polygon("-30,0 -10,-74 10,0", b.lit ? b.glow(made.lamp) : b.ink(made.dark)),
      polygon("-30,0 -10,-74 -18,0", b.own(0.07)),
      stroke("M-10 -80L-14 -88M-10 -80L-6 -88M-62 0L-76 4M64 0L80 4", b.ink(made.bark), 2.2),
    ].join(""),
};

/** Buildings, by name. */
export const buildings = { house, cabin, church, mosque, barn, tent };
