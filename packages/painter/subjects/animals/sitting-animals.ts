import { type Lch, lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path, polygon, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";

const furs = {
  cat: [lch(0.7, 0.13, 58), lch(0.42, 0.02, 270), lch(0.7, 0.02, 250)],
  dog: [lch(0.68, 0.1, 62), lch(0.5, 0.07, 48)],
  fox: [lch(0.67, 0.17, 48)],
};

/** Two eyes that look at us. */
export function eyes(b: Brush, y: number, apart: number, size: number, color: Lch = made.black): string {
  return [-apart, apart]
    .map(
      (x) =>
        ellipse(x, y, size, size * 1.15, b.ink(color)) +
        ellipse(x, y, color === made.black ? 0 : size * 0.42, size, b.ink(made.black)) +
        circle(x + size * 0.35, y - size * 0.4, size * 0.3, b.ink(made.white)),
    )
    .join("");
}

/** The body of an animal that sits and looks at us: haunches, chest and paws. */
function seat(b: Brush, chest: string): string {
  return [
    path("M-34 0Q-44 -30 -26 -56Q-14 -72 0 -72Q14 -72 26 -56Q44 -30 34 0Q0 5 -34 0Z", b.own()),
    path("M8 -70Q20 -66 26 -56Q44 -30 34 0Q24 2 14 2Q26 -30 8 -70Z", b.own(-0.06)),
    ellipse(0, -34, 17, 27, chest),
    path("M-13 -34Q-16 -14 -13 0H-2V-30ZM13 -34Q16 -14 13 0H2V-30Z", b.own(0.02)),
    ellipse(-10, -3, 10, 5.4, b.own(0.05)) + ellipse(10, -3, 10, 5.4, b.own(0.05)),
  ].join("");
}

function muzzle(b: Brush, y: number, nose: Lch): string {
  return (
    polygon(
      `-4.5,${y - 4} 4.5,${y - 4} 0,${y + 1}`,
      b.ink(nose),
      `stroke="${b.ink(nose)}" stroke-width="2" stroke-linejoin="round"`,
    ) +
    path(
      `M0 ${y + 1}V${y + 4}Q-5 ${y + 10} -9 ${y + 5}M0 ${y + 4}Q5 ${y + 10} 9 ${y + 5}`,
      "none",
      `stroke="${b.ink(made.dark)}" stroke-width="1.8" stroke-linecap="round"`,
    )
  );
}

function pointedEars(b: Brush, inner: Lch, tip?: Lch): string {
  const ear = (side: number) =>
    polygon(
      `${side * 27},-86 ${side * 24},-122 ${side * 3},-104`,
      b.own(side > 0 ? -0.05 : 0),
      `stroke="${b.own(side > 0 ? -0.05 : 0)}" stroke-width="3" stroke-linejoin="round"`,
    ) +
    polygon(`${side * 22.5},-92 ${side * 21.5},-112 ${side * 9},-102`, b.ink(inner)) +
    (tip === undefined
      ? ""
      : polygon(
          `${side * 24.7},-112 ${side * 24.5},-123 ${side * 16},-116`,
          b.ink(tip),
          `stroke="${b.ink(tip)}" stroke-width="3" stroke-linejoin="round"`,
        ));
  return ear(-1) + ear(1);
}

const cat: Drawing = {
  habitat: "land",
  width: 110,
  height: 124,
  size: 0.42,
  reach: { right: 13 },
  colors: furs.cat,
  draw: (b) =>
    [
      stroke("M26 -8C66 0 70 -38 50 -48", b.own(-0.05), 11),
      seat(b, b.second(made.cream)),
      pointedEars(b, made.pink),
      ellipse(0, -86, 31, 26, b.own()),
      path(
        "M-6 -111L-4 -101M0 -112V-100M6 -111L4 -101",
        "none",
        `stroke="${b.own(-0.13)}" stroke-width="3" stroke-linecap="round"`,
      ),
      ellipse(0, -76, 14, 9.5, b.second(made.cream)),
      eyes(b, -89, 13, 5.6, lch(0.8, 0.17, 118)),
      muzzle(b, -78, made.pink),
      stroke(
        "M-16 -78L-40 -82M-16 -75L-39 -72M16 -78L40 -82M16 -75L39 -72",
        b.ink(made.white),
        1.1,
        opacity(0.9),
      ),
    ].join(""),
};

const tiger: Drawing = {
  ...cat,
  habitat: "forest",
  colors: [lch(0.73, 0.16, 58)],
  draw: (b) => {
    const stripes =
      "M-33 -86H-22M-31 -78L-22 -79M33 -86H22M31 -78L22 -79M-30 -30L-18 -34M-34 -16L-22 -20M30 -30L18 -34M34 -16L22 -20M-26 -46L-17 -48M26 -46L17 -48";
    return cat.draw(b) + stroke(stripes, b.ink(made.black), 3.4);
  },
};

const dog: Drawing = {
  habitat: "land",
  width: 110,
  height: 118,
  size: 0.42,
  colors: furs.dog,
  draw: (b) =>
    [
      stroke("M28 -8Q54 -14 52 -40", b.own(-0.05), 12),
      seat(b, b.second(made.cream)),
      path("M-22 -62Q0 -52 22 -62L20 -54Q0 -46 -20 -54Z", b.ink(made.red)) +
        circle(0, -50, 4, b.ink(made.gold)),
      ellipse(0, -86, 29, 27, b.own()),
      path("M-24 -108Q-46 -106 -42 -72Q-34 -60 -26 -74Q-20 -92 -24 -108Z", b.own(-0.14)),
      path("M24 -108Q46 -106 42 -72Q34 -60 26 -74Q20 -92 24 -108Z", b.own(-0.17)),
      path("M-6 -112Q0 -114 6 -112Q10 -90 15 -80Q0 -56 -15 -80Q-10 -90 -6 -112Z", b.second(made.cream)),
      path("M-5 -69H5Q7 -56 0 -55Q-7 -56 -5 -69Z", b.ink(made.pink, -0.06)),
      eyes(b, -92, 12, 4.4),
      ellipse(0, -80, 6.5, 4.8, b.ink(made.black)),
      path(
        "M0 -76V-72Q-6 -66 -11 -71M0 -72Q6 -66 11 -71",
        "none",
        `stroke="${b.ink(made.dark)}" stroke-width="1.8" stroke-linecap="round"`,
      ),
    ].join(""),
};

const fox: Drawing = {
  habitat: "forest",
  width: 130,
  height: 124,
  size: 0.4,
  colors: furs.fox,
  draw: (b) =>
    [
      path("M20 -4Q74 6 74 -42Q74 -58 64 -66Q50 -56 44 -34Q38 -22 20 -22Z", b.own(-0.04)),
      path("M64 -66Q50 -56 47 -43Q58 -50 60 -42Q66 -48 73 -46Q74 -58 64 -66Z", b.second(made.cream)),
      seat(b, b.second(made.cream)),
      path("M-13 -14H-2V0H-14ZM2 -14H13L14 0H2Z", b.ink(made.dark)),
      pointedEars(b, made.cream, made.dark),
      path("M-33 -88Q-28 -112 0 -112Q28 -112 33 -88Q22 -66 0 -60Q-22 -66 -33 -88Z", b.own()),
      path(
        "M-33 -88Q-18 -88 -9 -78Q-4 -70 0 -60Q-22 -66 -33 -88ZM33 -88Q18 -88 9 -78Q4 -70 0 -60Q22 -66 33 -88Z",
        b.second(made.cream),
      ),
      eyes(b, -89, 13, 4.2),
      ellipse(0, -64, 5, 4, b.ink(made.black)),
    ].join(""),
};

const wolf: Drawing = { ...fox, habitat: "forest", colors: [lch(0.58, 0.015, 255), lch(0.48, 0.02, 265)] };

const rabbit: Drawing = {
  habitat: "land",
  width: 90,
  height: 140,
  size: 0.38,
  colors: [lch(0.8, 0.04, 65), made.white, lch(0.68, 0.02, 260)],
  draw: (b) =>
    [
      circle(30, -12, 12, b.ink(made.white)),
      seat(b, b.second(made.white)),
      ...[-1, 1].map(
        (s) =>
          `<g transform="rotate(${s * 10} 0 -100)">${ellipse(s * 12, -122, 9, 29, b.own(s > 0 ? -0.04 : 0))}${ellipse(s * 12, -120, 4.5, 21, b.ink(made.pink))}</g>`,
      ),
      ellipse(0, -84, 26, 23, b.own()),
      ellipse(-8, -76, 9, 7.5, b.second(made.white)) + ellipse(8, -76, 9, 7.5, b.second(made.white)),
      eyes(b, -88, 12, 4.4),
      muzzle(b, -79, made.pink),
      path("M-3 -72H3V-66H-3Z", b.ink(made.white)),
    ].join(""),
};

const lion: Drawing = {
  habitat: "land",
  width: 120,
  height: 130,
  size: 0.44,
  colors: [lch(0.78, 0.12, 75)],
  draw: (b) => {
    const mane = b.second(lch(0.52, 0.12, 45));
    const locks = Array.from({ length: 15 }, (_, i) => {
      const a = (i / 15) * Math.PI * 2;
      return circle(Math.cos(a) * 35, -86 + Math.sin(a) * 35, 13, mane);
    });
    return [
      stroke("M28 -8Q64 -10 56 -46", b.own(-0.05), 8) + circle(56, -50, 10, mane),
      seat(b, b.own(0.07)),
      circle(0, -86, 40, mane),
      ...locks,
      circle(-24, -108, 9, b.own()) + circle(24, -108, 9, b.own()),
      ellipse(0, -86, 30, 28, b.own()),
      ellipse(0, -74, 15, 11, b.ink(made.cream)),
      eyes(b, -91, 12, 4.4),
      muzzle(b, -77, made.bark),
    ].join("");
  },
};

const monkey: Drawing = {
  habitat: "forest",
  width: 120,
  height: 122,
  size: 0.4,
  colors: [lch(0.48, 0.07, 48)],
  draw: (b) =>
    [
      stroke("M28 -8C66 -4 66 -44 48 -44C38 -42 42 -30 50 -34", b.own(-0.04), 7),
      seat(b, b.ink(made.sand)),
      circle(-34, -88, 12, b.own()) + circle(34, -88, 12, b.own()),
      circle(-34, -88, 7, b.ink(made.sand)) + circle(34, -88, 7, b.ink(made.sand)),
      ellipse(0, -90, 31, 29, b.own()),
      path("M0 -104Q24 -116 25 -92Q30 -64 0 -64Q-30 -64 -25 -92Q-24 -116 0 -104Z", b.ink(made.sand)),
      eyes(b, -92, 11, 4.4),
      ellipse(-3, -80, 1.8, 1.4, b.ink(made.bark)) + ellipse(3, -80, 1.8, 1.4, b.ink(made.bark)),
      path(
        "M-11 -74Q0 -66 11 -74",
        "none",
        `stroke="${b.ink(made.bark)}" stroke-width="2" stroke-linecap="round"`,
      ),
    ].join(""),
};

const mouse: Drawing = {
  habitat: "land",
  width: 110,
  height: 112,
  size: 0.3,
  reach: { right: 32 },
  colors: [lch(0.7, 0.02, 260), lch(0.72, 0.05, 60)],
  draw: (b) =>
    [
      stroke("M28 -6C70 4 60 -30 84 -26", b.ink(made.pink), 4.4),
      seat(b, b.own(0.12)),
      ...[-26, 26].map((x) => circle(x, -102, 17, b.own(-0.03)) + circle(x, -101, 11, b.ink(made.pink))),
      path("M-25 -88Q-22 -108 0 -108Q22 -108 25 -88Q18 -68 0 -64Q-18 -68 -25 -88Z", b.own()),
      eyes(b, -88, 11, 4.6),
      circle(0, -68, 4.4, b.ink(made.pink, -0.06)),
      stroke("M-8 -70L-30 -74M-8 -68L-29 -64M8 -70L30 -74M8 -68L29 -64", b.own(-0.3), 1),
    ].join(""),
};

/** Animals that sit and look at us, by name. */
export const sittingAnimals = { cat, tiger, dog, fox, wolf, rabbit, lion, monkey, mouse };
