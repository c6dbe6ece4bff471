import { fromLab, lch, lift, mix, toHex, toLab } from "../color/color.ts";
import { circle, group, groupOpacity, num, opacity, path, rect, smooth, stroke } from "../shapes.ts";
import { countOf, glow, type Stage, shortSide } from "../stage.ts";
import { drawClouds } from "./clouds.ts";

/** Everything behind the land, from the sky's colour to the clouds. */
export function drawSky(stage: Stage): void {
  const { canvas, reading, setting } = stage;
  canvas.layer("sky", backdrop(stage));
  const night = setting.time === "night";
  const seesStars =
    night || (setting.time === "dusk" && !reading.weather.has("cloudy")) || reading.sky.has("stars");
  if (seesStars && !reading.weather.has("storm")) canvas.layer("stars", drawStars(stage, night ? 1 : 0.4));
  if (reading.sky.has("galaxy")) canvas.layer("galaxy", drawGalaxy(stage));
  if (reading.sky.has("aurora")) canvas.layer("aurora", drawAurora(stage));
  const hidden = reading.weather.has("storm") || (reading.weather.has("rain") && !reading.sky.has("sun"));
  const outshone = ["galaxy", "aurora", "fireworks", "comet"].some((sight) =>
    reading.sky.has(sight as "aurora"),
  );
  const named = reading.sky.has("moon") || reading.sky.has("crescent");
  if (night && !hidden && (named || !outshone)) canvas.layer("moon", drawMoon(stage));
  else if (!hidden && !night) canvas.layer("sun", drawSun(stage));
  if (reading.sky.has("comet")) canvas.layer("comet", drawComet(stage));
  if (reading.sky.has("rainbow")) canvas.layer("rainbow", drawRainbow(stage));
  if (reading.sky.has("fireworks")) canvas.layer("fireworks", drawFireworks(stage));
  canvas.layer("clouds", drawClouds(stage));
}

function backdrop({ canvas, light, width, height, horizon }: Stage): string {
  const steps = 12;
  const stops = Array.from({ length: steps + 1 }, (_, index) => {
    const part = index / steps;
    return { at: (part * horizon) / height, color: light.skyAt(part) };
  });
  return rect(0, 0, width, height, canvas.linear(stops));
}

/** Stars of many sizes, thinning out towards the horizon. */
export function drawStars(stage: Stage, brightness: number, bottom = stage.horizon): string {
  const random = stage.random.fork("stars");
  const warm = stage.light.ink(lch(0.97, 0.04, 85), { glows: true });
  const cool = stage.light.ink(lch(0.97, 0.03, 250), { glows: true });
  const stars = Array.from({ length: Math.min(1_400, countOf(stage, 190)) }, () => {
    const height = random.next() ** 1.35;
    const radius = random.chance(0.06) ? random.range(2.2, 3.4) : random.range(0.6, 1.9);
    const faint = random.range(0.35, 1) * brightness * (1 - 0.5 * height);
    return circle(
      random.range(0, stage.width),
      height * bottom,
      radius,
      random.chance(0.7) ? cool : warm,
      opacity(faint),
    );
  });
  return stars.join("");
}

/** The milky way: a slanting band of haze and many small stars. */
function drawGalaxy(stage: Stage): string {
  const random = stage.random.fork("galaxy");
  const { width, horizon, light } = stage;
  const slope = random.range(0.5, 0.9) * (random.chance(0.5) ? 1 : -1);
  const hues = [lch(0.6, 0.12, 300), lch(0.65, 0.1, 250), lch(0.72, 0.1, 350), lch(0.8, 0.06, 80)];
  const glows = hues.map((hue) => glow(stage, light.ink(hue, { glows: true }), 0.33));
  const place = (part: number, spread: number): [number, number] => {
    const along = -0.15 + part * 1.3;
    const off = (random.next() + random.next() + random.next() - 1.5) * spread;
    return [along * width, horizon * (0.45 + slope * (along - 0.5)) + off];
  };
  // Haze is dear to paint and has no fine detail: little of it in every quality, evenly along the band.
  const count = countOf(stage, 64 / stage.detail);
  const clouds = Array.from({ length: count }, (_, index) => {
    const [x, y] = place((index + random.next()) / count, 110);
    return circle(x, y, random.range(60, 175), random.pick(glows));
  });
  const white = light.ink(lch(0.98, 0.02, 250), { glows: true });
  const dust = Array.from({ length: countOf(stage, 420) }, () => {
    const [x, y] = place(random.next(), 200);
    return circle(x, y, random.range(0.5, 1.6), white, opacity(random.range(0.3, 0.95)));
  });
  return clouds.join("") + dust.join("");
}

function drawSun(stage: Stage): string {
  const { sun, light, reading } = stage;
  const color = toHex(light.sun);
  const warm = toHex(mix(light.sun, light.haze, 0.25));
  const veiled = reading.weather.has("fog") || reading.weather.has("cloudy");
  const halo = circle(sun.x, sun.y, sun.radius * 5.2, glow(stage, warm, veiled ? 0.4 : 0.75));
  const rings = [2.5, 1.65].map((size) => circle(sun.x, sun.y, sun.radius * size, color, opacity(0.16)));
  return halo + rings.join("") + circle(sun.x, sun.y, sun.radius, color, veiled ? opacity(0.7) : "");
}

function drawMoon(stage: Stage): string {
  const { sun, light, canvas, reading } = stage;
  const { x, y, radius } = sun;
  const color = toHex(light.sun);
  const halo = circle(x, y, radius * 4.6, glow(stage, color, 0.42));
  if (reading.sky.has("crescent")) {
    const r = num(radius);
    const inner = num(radius * 0.82);
    const crescent = `M${num(x + radius * 0.35)} ${num(y - radius * 0.94)}A${r} ${r} 0 1 0 ${num(x + radius * 0.94)} ${num(y + radius * 0.35)}A${inner} ${inner} 0 0 1 ${num(x + radius * 0.35)} ${num(y - radius * 0.94)}Z`;
    return halo + path(crescent, color);
  }
  const shade = toHex(lift(light.sun, -0.08));
  const craters = [
    [-0.35, -0.25, 0.24],
    [0.3, 0.1, 0.17],
    [-0.1, 0.45, 0.2],
    [0.35, -0.45, 0.1],
    [-0.55, 0.25, 0.09],
  ].map(([dx = 0, dy = 0, r = 0]) =>
    circle(x + dx * radius, y + dy * radius, r * radius, shade, opacity(0.6)),
  );
  const disc = canvas.linear([
    { at: 0, color: lift(light.sun, 0.02) },
    { at: 1, color: lift(light.sun, -0.07) },
  ]);
  return halo + circle(x, y, radius, disc) + craters.join("");
}

/** Curtains of light: vertical rays along a wavy lower edge. */
function drawAurora(stage: Stage): string {
  const random = stage.random.fork("aurora");
  const { width, horizon, light, canvas } = stage;
  const own = stage.reading.sky.get("aurora") ?? [];
  const hues =
    own.length > 0
      ? own
      : [lch(0.85, 0.2, 155), lch(0.8, 0.14, 185), lch(0.68, 0.2, 310), lch(0.8, 0.17, 140)];
  const curtains = Array.from({ length: 4 }, (_, index) => {
    const noise = random.noise();
    const tip = hues[(index + 2) % hues.length] ?? lch(0.7, 0.2, 310);
    const base = hues[index % hues.length] ?? tip;
    const fill = canvas.linear([
      { at: 0, color: light.ink(tip, { glows: true }), opacity: 0 },
      { at: 0.45, color: light.ink(mix(base, tip, 0.4), { glows: true }), opacity: 0.28 },
      { at: 0.85, color: light.ink(base, { glows: true }), opacity: 0.62 },
      { at: 1, color: light.ink(base, { glows: true }), opacity: 0 },
    ]);
    const middle = horizon * random.range(0.42, 0.78);
    const rays: string[] = [];
    const step = 16 / Math.min(1.4, stage.detail + 0.3);
    for (let x = -20; x < width + 20; x += step) {
      const bottom = middle + noise(x / 520, index) * Math.min(horizon * 0.2, 190);
      const tall = Math.min(horizon * 0.6, 520) * (0.55 + 0.35 * noise(x / 170, 9) + 0.22 * noise(x / 38, 4));
      const strength = 0.55 + 0.45 * noise(x / 300, index + 40);
      if (tall > 20)
        rays.push(rect(x, bottom - tall, step + 0.6, tall, fill, 0, opacity(Math.max(0.05, strength))));
    }
    return rays.join("");
  });
  return curtains.join("");
}

function drawComet(stage: Stage): string {
  const random = stage.random.fork("comet");
  const { width, horizon, light, canvas } = stage;
  const white = light.ink(lch(0.98, 0.02, 90), { glows: true });
  const fill = canvas.linear(
    [
      { at: 0, color: white, opacity: 0 },
      { at: 1, color: white, opacity: 0.95 },
    ],
    [0, 0, 1, 1],
  );
  return [0, 1, 2]
    .map((index) => {
      const size = (index === 0 ? 260 : 110) * random.range(0.85, 1.2);
      const [x, y] = [random.range(0.2, 0.85) * width, random.range(0.12, 0.5) * horizon];
      const tail = path(
        `M${num(x - size)} ${num(y - size * 0.5)}L${num(x + 3)} ${num(y - 3)}L${num(x - 2)} ${num(y + 4)}Z`,
        fill,
      );
      return tail + circle(x, y, index === 0 ? 6 : 3.4, white);
    })
    .join("");
}

function drawRainbow(stage: Stage): string {
  const { width, horizon, light } = stage;
  const hues = [25, 55, 92, 145, 220, 262, 305];
  const radius = Math.min(horizon * 0.82, width * 0.56);
  const band = radius * 0.034;
  const x = width * stage.random.fork("rainbow").range(0.35, 0.65);
  const arcs = hues.map((hue, index) => {
    const r = num(radius - index * band);
    const left = num(x - radius + index * band);
    const color = light.ink(lch(0.82, 0.14, hue), { glows: true });
    return stroke(
      `M${left} ${num(horizon + 30)}A${r} ${r} 0 0 1 ${num(x + radius - index * band)} ${num(horizon + 30)}`,
      color,
      band + 1,
    );
  });
  return group(groupOpacity(0.72), ...arcs);
}

function drawFireworks(stage: Stage): string {
  const random = stage.random.fork("fireworks");
  const { width, horizon, light } = stage;
  const bursts = Array.from({ length: Math.max(6, countOf(stage, 8)) }, (_, index) => {
    const [x, y] = [random.range(0.1, 0.9) * width, random.range(0.08, 0.46) * horizon];
    const radius = Math.min(horizon, shortSide) * random.range(0.11, 0.24);
    const hue = fromLab(toLab(lch(0.8, 0.18, random.range(0, 360) + index * 70)));
    const color = light.ink(hue, { glows: true });
    const spokes = random.int(14, 22);
    const rays = Array.from({ length: spokes }, (_, ray) => {
      const angle = (ray / spokes) * Math.PI * 2 + random.range(-0.05, 0.05);
      const length = radius * random.range(0.8, 1.05);
      const at = (part: number, drop: number) => [
        x + Math.cos(angle) * length * part,
        y + Math.sin(angle) * length * part + drop,
      ];
      const line = smooth([...at(0.22, 0), ...at(0.65, radius * 0.03), ...at(1, radius * 0.12)]);
      const [tipX = 0, tipY = 0] = at(1, radius * 0.12);
      return stroke(line, color, 2.6, opacity(0.85)) + circle(tipX, tipY, 4, color);
    });
    return circle(x, y, radius * 1.3, glow(stage, color, 0.3)) + rays.join("");
  });
  return bursts.join("");
}
