import { converter } from "culori";
import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { type PaintRequest, paintSvg } from "./paint-svg.ts";
import { subjectWords } from "./prompt/subject-words.ts";

const defaults: PaintRequest = {
  prompt: "a red house by a lake",
  seed: "1",
  width: 256,
  height: 256,
  quality: "low",
  transparent: false,
  palette: [],
  look: "plain",
};

const toLab = converter("oklab");

/** sRGB, each part 0 to 255, to OKLab. */
function labFromRgb(red: number, green: number, blue: number): { l: number; a: number; b: number } {
  return toLab({ mode: "rgb", r: red / 255, g: green / 255, b: blue / 255 });
}

function paint(request: Partial<PaintRequest> = {}): string {
  return paintSvg({ ...defaults, ...request });
}

/** Mean OKLab of a part of the picture, from one height to another. */
async function meanOf(svg: string, from = 0, to = 1): Promise<{ l: number; a: number; b: number }> {
  const { data, info } = await sharp(Buffer.from(svg))
    .resize(32, 32, { fit: "fill" })
    .removeAlpha()
    .raw()
    .toBuffer({
      resolveWithObject: true,
    });
  const sum = { l: 0, a: 0, b: 0 };
  const rows = [Math.round(from * info.height), Math.round(to * info.height)] as const;
  for (let at = rows[0] * 96; at < rows[1] * 96; at += 3) {
    const { l, a, b } = labFromRgb(data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0);
    sum.l += l;
    sum.a += a;
    sum.b += b;
  }
  const count = (rows[1] - rows[0]) * 32;
  return { l: sum.l / count, a: sum.a / count, b: sum.b / count };
}

const knownElements =
  /^<\/?(svg|defs|g|path|rect|circle|ellipse|polygon|stop|linearGradient|radialGradient|clipPath)[ />]/;
const forbidden = /href|script|\son\w+=|style=|url\((?!#)|https?:|[ ",(-](NaN|undefined|Infinity)\b/;

/** That a renderer takes it, and that nothing in it runs, loads or writes text. */
async function expectHarmless(svg: string): Promise<void> {
  const { data } = await sharp(Buffer.from(svg))
    .resize(8, 8, { fit: "fill" })
    .raw()
    .toBuffer({ resolveWithObject: true });
  expect(data.length).toBe(256);
  const drawing = svg.replace(/<title>[^<]*<\/title>/, "").replace('xmlns="http://www.w3.org/2000/svg"', "");
  expect(forbidden.exec(drawing)?.[0]).toBeUndefined();
  const elements = drawing.match(/<[^>]*>/g) ?? [];
  expect(elements.filter((element) => !knownElements.test(element))).toEqual([]);
}

describe("paintSvg", () => {
  it.each([
    "a cat in a meadow",
    "city skyline in the rain at night",
    "fish in a coral reef",
    "an astronaut on mars",
    "a robot",
    "a teapot on a table",
    "hope",
    "volcano, waterfall and canyon in a storm with a rainbow, fireworks and the milky way",
    "village, forest, jungle and desert by the sea with fog, snow and wind",
  ])("paints harmless markup for %j", async (prompt) => {
    for (const quality of ["low", "high"] as const) await expectHarmless(paint({ prompt, quality }));
    await expectHarmless(paint({ prompt, transparent: true }));
  });

  it("draws everything that it has a word for, as a layer of its name", async () => {
    for (const name of Object.keys(subjectWords)) {
      const word = subjectWords[name as keyof typeof subjectWords].split(" ")[0] ?? name;
      const article = name === "orange" ? "an orange on a table" : `a ${word.replaceAll("-", " ")}`;
      const svg = paint({ prompt: article });
      expect(svg, article).toContain(`<g id="subject-${name}">`);
      await expectHarmless(svg);
    }
  });

  it.each(["abstract", "geometric", "flowing", "wavy", "mosaic", "low poly", "concentric circles"])(
    "paints abstract pictures in the manner of %j",
    async (prompt) => {
      const svgs = ["1", "2", "3"].map((seed) => paint({ prompt, seed }));
      expect(new Set(svgs).size).toBe(3);
      for (const svg of svgs) {
        expect(svg).toContain('<g id="abstract">');
        await expectHarmless(svg);
      }
    },
  );

  it("keeps the prompt's own markup as the text of the title", async () => {
    const prompt = `</title></svg><script>alert(1)</script>&amp;"'\u0000\u0007\ud800\uffff${"x".repeat(900)}`;
    const svg = paint({ prompt });
    expect(svg).not.toContain("<script");
    expect(svg.match(/<\/svg>/g)).toHaveLength(1);
    const title = /<title>([^<]*)<\/title>/.exec(svg)?.[1] ?? "";
    expect(title).toMatch(
      /^&lt;\/title&gt;&lt;\/svg&gt;&lt;script&gt;alert\(1\)&lt;\/script&gt;&amp;amp;&quot;&apos;/,
    );
    expect(title.length).toBeLessThan(400);
    await expectHarmless(svg);
  });

  it("takes any prompt", async () => {
    const text = fc.string({ unit: "binary", maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(
        text,
        async (prompt) => await expectHarmless(paint({ prompt, width: 32, height: 32 })),
      ),
      { numRuns: 40 },
    );
  });

  it("paints the same for the same request, and other pictures for other prompts and seeds", () => {
    expect(paint()).toBe(paint());
    const others = [
      paint({ seed: "2" }),
      paint({ prompt: "a blue house by a lake" }),
      paint({ quality: "high" }),
    ];
    expect(new Set([paint(), ...others]).size).toBe(4);
  });

  it("puts more into a picture of higher quality", () => {
    const sizes = (["low", "medium", "high"] as const).map((quality) => paint({ quality }).length);
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    expect(new Set(sizes).size).toBe(3);
  });

  it("hazes the milky way no more in higher quality, which takes most of the time for nothing to see", () => {
    const clouds = (["low", "medium", "high"] as const).map((quality) => {
      const svg = paint({ prompt: "hills under the milky way", quality });
      return /<g id="galaxy">.*?<\/g>/.exec(svg)?.[0].match(/url\(/g)?.length;
    });
    expect(clouds[0]).toBeGreaterThan(0);
    expect(clouds).toEqual([clouds[0], clouds[0], clouds[0]]);
  });

  it("does not change the picture with the number of its pixels", () => {
    const body = (svg: string) => svg.replace(/width="\d+" height="\d+"/, "");
    expect(body(paint({ width: 2_048, height: 1_024 }))).toBe(body(paint({ width: 512, height: 256 })));
    expect(body(paint({ zoom: 0.25 }))).toBe(body(paint()));
    expect(paint({ zoom: 0.25 })).toContain('width="64" height="64"');
  });
});

describe("the words of the prompt", () => {
  const sky = async (prompt: string) => await meanOf(paint({ prompt }), 0, 0.3);

  it("colour the sky", async () => {
    const [red, blue] = [await sky("red sky over the sea"), await sky("blue sky over the sea")];
    expect(red.a).toBeGreaterThan(blue.a + 0.1);
    expect(red.b).toBeGreaterThan(blue.b + 0.1);
  });

  it("make nights darker than days", async () => {
    const [night, day] = [
      await meanOf(paint({ prompt: "hills at night" })),
      await meanOf(paint({ prompt: "hills at noon" })),
    ];
    expect(night.l).toBeLessThan(day.l - 0.25);
  });

  it("make winter white and summer green", async () => {
    const ground = async (prompt: string) => await meanOf(paint({ prompt }), 0.8, 1);
    const [winter, summer] = [await ground("hills in winter, day"), await ground("hills in summer, day")];
    expect(winter.l).toBeGreaterThan(summer.l + 0.1);
    expect(Math.hypot(summer.a, summer.b)).toBeGreaterThan(Math.hypot(winter.a, winter.b) + 0.06);
  });

  it("colour things", () => {
    const bodies = ["red", "green"].map(
      (color) => /<g id="subject-car">.*?<\/g><\/g>/.exec(paint({ prompt: `a ${color} car at noon` }))?.[0],
    );
    expect(bodies[0]).toBeDefined();
    expect(bodies[0]).not.toBe(bodies[1]);
  });

  it.each([
    ["rain over hills", "rain"],
    ["a storm at sea", "lightning"],
    ["snowfall", "snow"],
    ["foggy hills", "fog"],
    ["hills under a rainbow", "rainbow"],
    ["the northern lights", "aurora"],
    ["mountains", "mountains"],
    ["a volcano", "volcano"],
    ["a dark pine forest", "pinewood"],
    ["city at dusk", "city"],
    ["full moon", "moon"],
    ["a lake", "water"],
    ["fireworks", "fireworks"],
  ])("%j has %s", (prompt, layer) => {
    expect(paint({ prompt })).toContain(`<g id="${layer}">`);
  });

  it("count", () => {
    const count = (prompt: string) => paint({ prompt }).match(/id="subject-/g)?.length;
    expect([count("a cat"), count("two cats"), count("five cats and a dog")]).toEqual([1, 2, 6]);
  });
});

describe("references", () => {
  it("steer the colours of the whole picture", async () => {
    const green = { ...labFromRgb(30, 160, 60), share: 0.6 };
    const pale = { ...labFromRgb(200, 240, 190), share: 0.4 };
    const [plain, steered] = [
      await meanOf(paint({ prompt: "sunset over the sea" })),
      await meanOf(paint({ prompt: "sunset over the sea", palette: [green, pale] })),
    ];
    expect(plain.a).toBeGreaterThan(0.02);
    expect(steered.a).toBeLessThan(-0.04);
  });
});

/** The most opaque pixel of every column of a cut-out, from left to right. */
async function columnsOf(request: Partial<PaintRequest>): Promise<number[]> {
  const { data, info } = await sharp(Buffer.from(paint({ ...request, transparent: true })))
    .extractChannel(3)
    .raw()
    .toBuffer({ resolveWithObject: true });
  return Array.from({ length: info.width }, (_, x) =>
    Math.max(...Array.from({ length: info.height }, (_, y) => data[y * info.width + x] ?? 0)),
  );
}

describe("what reaches far", () => {
  it.each(["1", "2", "3", "4"])("is whole in a cut-out: the fire of a dragon (seed %s)", async (seed) => {
    for (const [width, height] of [
      [256, 256],
      [128, 256],
    ] as const) {
      const columns = await columnsOf({ prompt: "a dragon", seed, width, height });
      expect([columns[0], columns.at(-1)]).toEqual([0, 0]);
    }
  });

  it("stands on nothing of the scene in a cut-out: a train without its railway", async () => {
    const columns = await columnsOf({ prompt: "a train" });
    expect([columns[0], columns.at(-1)]).toEqual([0, 0]);
  });

  it.each(["1", "2"])("fades away before its end: the light of a lighthouse (seed %s)", async (seed) => {
    const size = { width: 2_400, height: 300 };
    const columns = await columnsOf({ prompt: "a lighthouse at night", seed, ...size });
    const lit = columns.findIndex((alpha) => alpha > 0);
    const unlit = columns.findLastIndex((alpha) => alpha > 0);
    // It shines to both sides, farther than the house is wide, and ends within the picture.
    expect(lit).toBeGreaterThan(0);
    expect(unlit).toBeLessThan(size.width - 1);
    expect(unlit - lit).toBeGreaterThan(2 * size.height);
    expect(columns[lit]).toBeLessThan(8);
    expect(columns[unlit]).toBeLessThan(8);
  });
});

it("puts who rides what flies onto its back, not over its wings", () => {
  const svg = paint({ prompt: "a robot riding a dragon" });
  const placeOf = (name: string) => {
    const [, y, scale] =
      new RegExp(
        `<g id="subject-${name}[-\\d]*"><g transform="translate\\([-\\d.]+ ([-\\d.]+)\\)[^"]*? ([\\d.]+)\\)"`,
      ).exec(svg) ?? [];
    return { y: Number(y), scale: Number(scale) };
  };
  const [robot, dragon] = [placeOf("robot"), placeOf("dragon")];
  // The wings reach as high over the dragon's middle as half of its height.
  expect((dragon.y - robot.y) / dragon.scale).toBeLessThan(40);
  expect((dragon.y - robot.y) / dragon.scale).toBeGreaterThan(-40);
});

describe("a transparent ground", () => {
  const alphas = async (request: Partial<PaintRequest>) => {
    const data = await sharp(Buffer.from(paint({ ...request, transparent: true })))
      .extractChannel(3)
      .raw()
      .toBuffer();
    return {
      corner: data[0],
      clear: data.filter((alpha) => alpha === 0).length,
      solid: data.filter((alpha) => alpha === 255).length,
    };
  };

  it.each(["a cat", "two sailboats and a lighthouse", "mountains at sunset", "hope"])(
    "is behind the subject alone: %j",
    async (prompt) => {
      for (const [width, height] of [
        [256, 256],
        [64, 512],
      ] as const) {
        const { corner, clear, solid } = await alphas({ prompt, width, height });
        expect(corner).toBe(0);
        expect(clear).toBeGreaterThan(500);
        expect(solid).toBeGreaterThan(200);
      }
    },
  );

  it("is nowhere unless asked for", async () => {
    const { isOpaque } = await sharp(Buffer.from(paint())).stats();
    expect(isOpaque).toBe(true);
  });
});
