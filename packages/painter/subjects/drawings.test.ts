import { expect, it } from "vitest";
import { inkExtent } from "../__fixtures__/ink-extent.ts";
import { Light } from "../color/light.ts";
import { readPrompt } from "../prompt/read-prompt.ts";
import { Random } from "../random.ts";
import { settingOf } from "../scene/choose-setting.ts";
import { Brush, type Drawing, isCentred, made } from "./drawing.ts";
import { drawings } from "./drawings.ts";

/** A drawing by itself; what shines is not painted. */
function draw(drawing: Drawing, seed: string): string {
  const [random, reading] = [new Random(seed), readPrompt("a night in autumn")];
  const light = new Light(reading, settingOf(reading, random), [], random);
  const look = { main: made.red, leaves: [made.leaf], winter: false, shine: () => "none" };
  return drawing.draw(new Brush(light, random, look));
}

it.each(Object.entries(drawings))(
  "paints %s within its box and reach, and a twelfth of it",
  async (_, drawing) => {
    const { width, height, reach: { left = 0, right = 0, top = 0, bottom = 0 } = {} } = drawing;
    const foot = isCentred(drawing) ? height / 2 : 0;
    const box = {
      left: -width / 2 - left - width / 12,
      right: width / 2 + right + width / 12,
      top: foot - height - top - height / 12,
      bottom: foot + bottom + height / 12,
    };
    const frame = {
      left: -width * 1.5,
      right: width * 1.5,
      top: foot - height * 3,
      bottom: foot + height * 3,
    };
    for (const seed of ["1", "2", "3"]) {
      const ink = await inkExtent(draw(drawing, seed), frame);
      const pixel = Math.max(width * 3, height * 6) / 240;
      expect(ink.left).toBeGreaterThan(box.left - pixel);
      expect(ink.right).toBeLessThan(box.right + pixel);
      expect(ink.top).toBeGreaterThan(box.top - pixel);
      expect(ink.bottom).toBeLessThan(box.bottom + pixel);
    }
  },
);
