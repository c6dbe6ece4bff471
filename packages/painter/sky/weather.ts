import { lch, lift, mix, toHex } from "../color/color.ts";
import { leafColors } from "../land/ground-color.ts";
import { circle, ellipse, num, opacity, path, rect, stroke } from "../shapes.ts";
import { countOf, glow, type Stage, shortSide } from "../stage.ts";

/** What falls, drifts and flashes in front of everything. */
export function drawWeather(stage: Stage): void {
  const { canvas, reading, setting } = stage;
  const { weather } = reading;
  if (weather.has("fog")) canvas.layer("mist", drawFog(stage, 0.24));
  if (weather.has("storm")) canvas.layer("lightning", lightning(stage));
  if (weather.has("rain") || weather.has("storm")) canvas.layer("rain", rain(stage));
  if (weather.has("snow") || setting.season === "winter")
    canvas.layer("snow", snow(stage, weather.has("snow") ? 1 : 0.3));
  if (weather.has("wind")) canvas.layer("wind", wind(stage));
  if (setting.season === "autumn" && setting.ground === "grass") canvas.layer("leaves", fallingLeaves(stage));
  canvas.layer("vignette", vignette(stage));
}

/** Bands of mist around the horizon. */
export function drawFog({ canvas, light, width, height, horizon, random }: Stage, strength: number): string {
  const own = random.fork("fog");
  const pale = toHex(lift(light.haze, 0.04));
  return Array.from({ length: 5 }, (_, index) => {
    const y = horizon + (index - 2.9) * 78 + own.range(-30, 30);
    const fill = canvas.linear([
      { at: 0, color: pale, opacity: 0 },
      { at: 0.5, color: pale, opacity: strength },
      { at: 1, color: pale, opacity: 0 },
    ]);
    return rect(0, y, width, Math.min(230, height * 0.3), fill);
  }).join("");
}

function rain(stage: Stage): string {
  const random = stage.random.fork("rain");
  const color = toHex(mix(lch(0.95, 0.02, 230), stage.light.haze, 0.3));
  const near: string[] = [];
  const far: string[] = [];
  for (let i = 0; i < countOf(stage, 260); i++) {
    const length = random.range(16, 44);
    const [x, y] = [random.range(-20, stage.width), random.range(-40, stage.height)];
    (i % 3 === 0 ? near : far).push(`M${num(x)} ${num(y)}l${num(-length * 0.26)} ${num(length)}`);
  }
  const rings = Array.from({ length: countOf(stage, 26) }, () => {
    const y = random.range(stage.horizon + 60, stage.height);
    const r = (8 + 22 * ((y - stage.horizon) / (stage.height - stage.horizon))) * random.range(0.7, 1.2);
    return `<ellipse cx="${num(random.range(0, stage.width))}" cy="${num(y)}" rx="${num(r)}" ry="${num(r * 0.28)}" fill="none" stroke="${color}" stroke-width="1.6" stroke-opacity="0.5"/>`;
  });
  return (
    stroke(far.join(""), color, 1.3, opacity(0.45)) +
    stroke(near.join(""), color, 2.2, opacity(0.6)) +
    rings.join("")
  );
}

function snow(stage: Stage, amount: number): string {
  const random = stage.random.fork("snow");
  const white = stage.light.ink(lch(0.99, 0.006, 240), { glows: !stage.light.dark });
  return Array.from({ length: countOf(stage, 210, amount) }, () => {
    const near = random.next() ** 3;
    return circle(
      random.range(0, stage.width),
      random.range(0, stage.height),
      1.6 + 5.5 * near,
      white,
      opacity(random.range(0.55, 0.95)),
    );
  }).join("");
}

function lightning(stage: Stage): string {
  const random = stage.random.fork("lightning");
  const color = stage.light.ink(lch(0.97, 0.06, 95), { glows: true });
  const bolt = (x: number, y: number, end: number, width: number): string => {
    const points = [`M${num(x)} ${num(y)}`];
    const forks: string[] = [];
    let [px, py] = [x, y];
    while (py < end) {
      px += random.range(-46, 46);
      py += random.range(34, 74);
      points.push(`L${num(px)} ${num(Math.min(end, py))}`);
      if (width > 3 && random.chance(0.28))
        forks.push(bolt(px, py, py + (end - py) * random.range(0.3, 0.6), width * 0.45));
    }
    return stroke(points.join(""), color, width) + forks.join("");
  };
  const x = stage.width * random.range(0.2, 0.8);
  const top = stage.horizon * 0.2;
  return circle(x, top + 90, 330, glow(stage, color, 0.4)) + bolt(x, top, stage.horizon - 4, 7);
}

function wind(stage: Stage): string {
  const random = stage.random.fork("wind");
  const color = toHex(lift(stage.light.skyAt(0.6), 0.14));
  return Array.from({ length: countOf(stage, 7) }, () => {
    const [x, y, length] = [
      random.range(-0.1, 0.8) * stage.width,
      random.range(0.1, 0.9) * stage.horizon,
      random.range(140, 330),
    ];
    const curl = random.chance(0.6) ? `c46 0 50 -44 22 -46c-18 0 -22 20 -8 24` : "";
    return stroke(
      `M${num(x)} ${num(y)}q${num(length / 2)} -24 ${num(length)} 0${curl}`,
      color,
      4.5,
      opacity(0.6),
    );
  }).join("");
}

function fallingLeaves(stage: Stage): string {
  const random = stage.random.fork("falling");
  const colors = leafColors(stage);
  return Array.from({ length: countOf(stage, 30) }, () => {
    const [x, y, r] = [
      random.range(0, stage.width),
      random.range(0.2, 1) * stage.height,
      random.range(5, 10),
    ];
    return ellipse(
      x,
      y,
      r,
      r * 0.5,
      stage.light.ink(random.pick(colors)),
      `transform="rotate(${random.int(0, 180)} ${num(x)} ${num(y)})"`,
    );
  }).join("");
}

/** A little darker towards the corners. */
export function vignette({ canvas, light, width, height }: Stage): string {
  const dark = toHex(lift(light.skyAt(0), -0.35));
  const fill = canvas.radial([
    { at: 0, color: dark, opacity: 0 },
    { at: 0.72, color: dark, opacity: 0 },
    { at: 1, color: dark, opacity: 0.16 },
  ]);
  const [x, y] = [width * 0.21, height * 0.21];
  return path(`M${num(-x)} ${num(-y)}H${num(width + x)}V${num(height + y)}H${num(-x)}Z`, fill);
}

/** Where the ground would be if the picture were square. */
export const usualGround = shortSide * 0.38;
