import { lch, lift, mix, toHex } from "../color/color.ts";
import type { Random } from "../random.ts";
import { num, opacity, path, placed, rect } from "../shapes.ts";
import { type Stage, shortSide } from "../stage.ts";

/** The clouds that the weather and the time of day have; empty for a clear sky. */
export function drawClouds(stage: Stage): string {
  const random = stage.random.fork("clouds");
  const { weather, sky } = stage.reading;
  if (weather.has("clear") && !sky.has("clouds")) return "";
  const heavy = weather.has("storm") || weather.has("rain") || weather.has("cloudy");
  const many = heavy
    ? 9
    : sky.has("clouds")
      ? 6
      : weather.has("snow") || weather.has("fog")
        ? 3
        : random.int(2, 4);
  const night = stage.setting.time === "night";
  if (night && !heavy && !sky.has("clouds") && random.chance(0.6)) return "";
  const low =
    stage.setting.time === "sunset" || stage.setting.time === "dusk" || stage.setting.time === "dawn";
  const streaky = low && !heavy && random.chance(0.7);
  const breadth = Math.max(1, stage.width / shortSide) * Math.max(1, (stage.horizon / 620) ** 0.7);
  const clouds = Array.from({ length: Math.min(60, Math.round(many * breadth)) }, (_, index) =>
    streaky ? streaks(stage, random) : cumulus(stage, random, heavy, index),
  );
  return clouds.join("");
}

function cumulus(stage: Stage, random: Random, heavy: boolean, index: number): string {
  const { light, canvas, width, horizon } = stage;
  const height = random.range(heavy ? 0.02 : 0.1, heavy ? 0.5 : 0.7);
  const behind = light.skyAt(height);
  const night = stage.setting.time === "night";
  const own = stage.reading.sky.get("clouds")?.[0];
  const brightest = heavy
    ? lift(behind, stage.reading.weather.has("storm") && !night ? -0.07 : 0.06)
    : mix(light.sun, lch(0.985, 0.01, 90), 0.55);
  const top = own === undefined ? mix(brightest, behind, night ? 0.78 : 0.12) : light.seen(own);
  const bottom = heavy ? lift(behind, night ? -0.02 : -0.1) : mix(top, behind, 0.6);
  const fill = canvas.linear([
    { at: 0, color: toHex(top), opacity: 0.96 },
    { at: 1, color: toHex(bottom), opacity: heavy ? 0.9 : 0.42 },
  ]);
  const size = (heavy ? random.range(1.3, 2.3) : random.range(0.55, 1.25)) * (1 - 0.35 * height);
  const slot = (index + random.range(0.1, 0.9)) / 4;
  return placed(path(cloudOutline(random), fill), {
    x: ((slot + random.next() * 0.3) % 1.1) * width,
    y: height * horizon,
    scale: size,
  });
}

/** A flat base and three to five bumps, about 260 wide; its base is at 0. */
export function cloudOutline(random: Random): string {
  const bumps = random.int(3, 5);
  const radii = Array.from({ length: bumps }, (_, index) => {
    const middle = 1 - Math.abs(index - (bumps - 1) / 2) / bumps;
    return (20 + 48 * middle ** 1.3) * random.range(0.8, 1.2);
  });
  const total = radii.reduce((sum, radius) => sum + radius * 1.32, 0);
  let x = -total / 2 - 16;
  const parts = [`M${num(x)} 0`, `a16 16 0 0 1 0 -32`];
  for (const radius of radii) {
    const chord = radius * 1.32;
    parts.push(`a${num(radius)} ${num(radius)} 0 0 1 ${num(chord)} ${num(random.range(-9, 9))}`);
    x += chord;
  }
  parts.push(`L${num(x + 10)} -30`, `a16 16 0 0 1 0 30`);
  return `${parts.join("")}Z`;
}

/** A few long bars of evening cloud, one over the other. */
function streaks(stage: Stage, random: Random): string {
  const { light, width, horizon } = stage;
  const height = random.range(0.18, 0.82);
  const color = mix(light.skyAt(Math.min(1, height + 0.28)), light.sun, 0.2);
  const [x, y] = [random.range(-0.1, 0.9) * width, height * horizon];
  return [0, 1, 2]
    .map((index) => {
      const length = random.range(130, 420) * (index === 1 ? 1.25 : 0.8);
      const thick = random.range(9, 17);
      const left = x + random.range(-90, 90);
      return rect(
        left,
        y + index * 15,
        length,
        thick,
        toHex(color),
        thick / 2,
        opacity(random.range(0.4, 0.75)),
      );
    })
    .join("");
}
