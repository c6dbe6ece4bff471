import { castSubjects, drawCast } from "../cast/cast.ts";
import { lch, lift, mix, toHex } from "../color/color.ts";
import { below, ridgeLine } from "../land/ridge.ts";
import type { Random } from "../random.ts";
import { circle, ellipse, num, opacity, path, rect } from "../shapes.ts";
import { drawStars } from "../sky/sky.ts";
import { countOf, glow, type Stage, shortSide } from "../stage.ts";

/** Space: clouds of gas, stars, a far planet, and the moon's ground where something stands. */
export function drawCosmos(stage: Stage): void {
  const { canvas, light, width, height, setting, reading } = stage;
  const random = stage.random.fork("cosmos");
  const fill = canvas.linear(
    [0, 0.5, 1].map((at) => ({ at, color: light.skyAt(at * 0.7) })),
    [0, 0, 1, 1],
  );
  canvas.layer("space", rect(0, 0, width, height, fill));
  canvas.layer("nebula", nebula(stage, random));
  canvas.layer(
    "stars",
    drawStars(stage, 1, height),
    drawStars({ ...stage, random: random.fork("more") }, 0.8, height),
  );
  const floor = height - Math.min(height * 0.26, 330);
  const named = reading.subjects.some(({ name }) => name === "planet");
  if (!named) canvas.layer("planets", planets(stage, random, setting.shore ? floor : height));
  if (setting.shore) canvas.layer("ground", moonGround(stage, random, floor));
  const margin = width * 0.05;
  const free = {
    left: margin,
    right: width - margin,
    top: height * 0.06,
    bottom: setting.shore ? floor * 0.9 : height * 0.94,
    kind: "float" as const,
  };
  const ground = {
    left: margin,
    right: width - margin,
    top: floor + (height - floor) * 0.3,
    bottom: height - 60,
    kind: "ground" as const,
  };
  const actors = castSubjects(stage, ({ habitat }) =>
    habitat === "space" || habitat === "air" || !setting.shore ? free : ground,
  );
  drawCast(stage, actors);
}

function nebula(stage: Stage, random: Random): string {
  const { light, width, height } = stage;
  const own = stage.reading.places.get("space") ?? stage.reading.sky.get("galaxy") ?? [];
  const base = random.range(0, 360);
  const hues =
    own.length > 0
      ? own
      : [
          lch(0.58, 0.17, base),
          lch(0.62, 0.14, base + 50),
          lch(0.7, 0.12, base + 110),
          lch(0.5, 0.17, base - 40),
        ];
  const glows = hues.map((hue) => glow(stage, light.ink(hue, { glows: true }), 0.34));
  const noise = random.noise();
  const slope = random.range(-0.6, 0.6);
  return Array.from({ length: countOf(stage, 48) }, () => {
    const along = random.range(-0.1, 1.1);
    const wave = noise(along * 2.2, 3) * 0.22;
    const y = (0.5 + slope * (along - 0.5) + wave + (random.next() + random.next() - 1) * 0.28) * height;
    return circle(along * width, y, random.range(70, 270), random.pick(glows));
  }).join("");
}

function planets(stage: Stage, random: Random, bottom: number): string {
  const { canvas, light, width } = stage;
  const count = random.int(1, 2);
  return Array.from({ length: count }, (_, index) => {
    const radius =
      (index === 0 ? random.range(90, 170) : random.range(26, 52)) *
      Math.min(1.3, (bottom / shortSide) ** 0.4);
    const [x, y] = [
      width * (index === 0 ? random.pick([0.2, 0.8]) : random.range(0.2, 0.8)),
      bottom * random.range(0.16, 0.42),
    ];
    const hue = random.range(0, 360);
    const body = canvas.linear(
      [
        { at: 0, color: light.seen(lch(0.82, 0.11, hue), { glows: true }) },
        { at: 0.55, color: light.seen(lch(0.62, 0.14, hue + 25), { glows: true }) },
        { at: 1, color: light.seen(lch(0.3, 0.1, hue + 50), { glows: true }) },
      ],
      [0.1, 0, 0.9, 1],
    );
    const clip = canvas.clip(circle(x, y, radius, "#000"));
    const bands = Array.from({ length: 6 }, () =>
      ellipse(
        x,
        y + random.range(-0.9, 0.9) * radius,
        radius * 1.2,
        radius * random.range(0.04, 0.13),
        light.ink(lch(random.range(0.5, 0.86), 0.11, hue + random.range(-20, 40)), { glows: true }),
        opacity(0.35),
      ),
    );
    const halo = circle(
      x,
      y,
      radius * 1.5,
      glow(stage, light.ink(lch(0.75, 0.13, hue), { glows: true }), 0.3),
    );
    const spots = `<g ${clip}><g transform="rotate(-18 ${num(x)} ${num(y)})">${bands.join("")}</g></g>`;
    return halo + circle(x, y, radius, body) + spots;
  }).join("");
}

function moonGround(stage: Stage, random: Random, floor: number): string {
  const { canvas, light, width, height, reading } = stage;
  const color =
    reading.places.get("moonscape")?.[0] ??
    random.pick([lch(0.68, 0.02, 270), lch(0.64, 0.1, 40), lch(0.6, 0.06, 300)]);
  const far = below(
    ridgeLine(
      stage,
      { base: floor + 10, amplitude: 130, wavelength: 330, octaves: 4, sharp: true },
      random.noise(),
    ),
    height + 4,
    toHex(mix(light.seen(color), light.skyAt(0.4), 0.6)),
  );
  const fill = canvas.linear([
    { at: 0, color: lift(light.seen(color), 0.06) },
    { at: 1, color: lift(light.seen(color), -0.1) },
  ]);
  const near = below(
    ridgeLine(stage, { base: floor + 44, amplitude: 40, wavelength: 620, octaves: 2 }, random.noise()),
    height + 4,
    fill,
  );
  const craters = Array.from({ length: countOf(stage, 16) }, () => {
    const part = random.next();
    const y = floor + 70 + part * (height - floor - 70);
    const r = (12 + 52 * part) * random.range(0.5, 1.1);
    const x = random.range(0, width);
    return (
      ellipse(x, y, r, r * 0.3, light.ink(lift(color, -0.14))) +
      path(
        `M${num(x - r)} ${num(y)}A${num(r)} ${num(r * 0.3)} 0 0 0 ${num(x + r)} ${num(y)}A${num(r)} ${num(r * 0.2)} 0 0 1 ${num(x - r)} ${num(y)}Z`,
        light.ink(lift(color, 0.11)),
      )
    );
  });
  return far + near + craters.join("");
}
