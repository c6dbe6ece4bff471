import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aspectRatios, type ImageCapabilities, resolutions } from "../../providers/catalog/image.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { builtInProviders } from "../../providers/manifests.ts";
import { anySizes, imageEndpoint } from "../../test/fakes/fake-image.ts";
import {
  derivePixels,
  matchesRatio,
  nearestRatio,
  nearestTier,
  offeredRatios,
  offeredTiers,
  offersSize,
  readSize,
  resolveSize,
  type SizeFields,
  type SizeRequest,
  tierOf,
} from "./size.ts";
import { usualSize } from "./usual-sizes.ts";

const catalog = await loadCatalog({
  directories: [builtInCatalogDirectory],
  providerSlugs: builtInProviders.map(({ slug }) => slug),
});
const builtIn = catalog.imageModels().flatMap(({ endpoints }) => endpoints.map(({ image }) => image));

const capabilities = (sizes: ImageCapabilities["sizes"], part: Partial<ImageCapabilities> = {}) =>
  imageEndpoint({ image: { sizes, ...part } }).image;
const list = (...sizes: readonly string[]): ImageCapabilities["sizes"] => ({
  kind: "list",
  sizes: sizes.map((size) => ({ width: Number(size.split("x")[0]), height: Number(size.split("x")[1]) })),
});
const wish = (part: Partial<SizeRequest> = {}): SizeRequest => ({
  aspectRatio: undefined,
  resolution: undefined,
  pixels: undefined,
  ...part,
});
const read = (part: Partial<SizeFields>) =>
  readSize({ aspectRatio: "", resolution: undefined, size: "", ...part });
const ratioOf = (ratio: string) => Number(ratio.split(":")[0]) / Number(ratio.split(":")[1]);
const sideOf = { "512": 512, "1K": 1024, "2K": 2048, "4K": 4096 } as const;
const farness = (one: number, other: number) => Math.abs(Math.log(one / other));

const anyRatio = fc.constantFrom(...aspectRatios);
const anyTier = fc.constantFrom(...resolutions);
const anyPixels = fc.record({
  width: fc.integer({ min: 1, max: 9000 }),
  height: fc.integer({ min: 1, max: 9000 }),
});

test("the interface has 21 aspect ratios besides auto", () => {
  expect(new Set(aspectRatios).size).toBe(21);
});

describe("a tier", () => {
  test.for([
    [1, 1, "512"],
    [512, 512, "512"],
    [724, 724, "512"],
    [725, 725, "1K"],
    [1024, 1024, "1K"],
    [1448, 1448, "1K"],
    [1449, 1449, "2K"],
    [2896, 2896, "2K"],
    [2897, 2897, "4K"],
    [4096, 4096, "4K"],
    [99_999, 99_999, "4K"],
    [256, 1024, "512"],
    [3840, 2160, "2K"],
  ] as const)("of %ix%i is %s", ([width, height, tier]) => {
    expect(tierOf({ width, height })).toBe(tier);
  });

  test("is the nearest to the root of the area on a log scale, whichever way the image lies", () => {
    fc.assert(
      fc.property(anyPixels, ({ width, height }) => {
        const side = Math.sqrt(width * height);
        const far = (tier: (typeof resolutions)[number]) => farness(sideOf[tier], side);
        const found = tierOf({ width, height });
        expect(resolutions.every((tier) => far(found) <= far(tier) + 1e-9)).toBe(true);
        expect(tierOf({ width: height, height: width })).toBe(found);
      }),
    );
  });
});

describe("a pixel size matches a ratio", () => {
  test.for([
    [1000, 1000, "1:1", true],
    [1010, 1000, "1:1", true],
    [990, 1000, "1:1", true],
    [1011, 1000, "1:1", false],
    [989, 1000, "1:1", false],
    [1920, 1080, "16:9", true],
    [1366, 768, "16:9", true],
    [1080, 1920, "16:9", false],
    [1170, 540, "19.5:9", true],
    [540, 1170, "9:19.5", true],
    [8000, 1000, "8:1", true],
    [8080, 1000, "8:1", true],
    [8081, 1000, "8:1", false],
  ] as const)("%ix%i and %s: %s", ([width, height, ratio, matches]) => {
    expect(matchesRatio({ width, height }, ratio)).toBe(matches);
  });
});

describe("reading the fields", () => {
  test.for<[Partial<SizeFields>, Partial<SizeRequest>]>([
    [{}, {}],
    [{ aspectRatio: "auto" }, {}],
    [{ aspectRatio: "16:9" }, { aspectRatio: "16:9" }],
    [{ resolution: "2K" }, { resolution: "2K" }],
    [{ size: "2K" }, { resolution: "2K" }],
    [{ size: "512" }, { resolution: "512" }],
    [
      { size: "2K", resolution: "2K", aspectRatio: "9:16" },
      { resolution: "2K", aspectRatio: "9:16" },
    ],
    [{ size: "1024x768" }, { pixels: { width: 1024, height: 768 } }],
    [{ size: "1024x768", aspectRatio: "auto" }, { pixels: { width: 1024, height: 768 } }],
    [
      { size: "1024x768", aspectRatio: "4:3", resolution: "1K" },
      { aspectRatio: "4:3", resolution: "1K", pixels: { width: 1024, height: 768 } },
    ],
  ])("%j asks for %j", ([fields, request]) => {
    expect(read(fields).request).toEqual(wish(request));
  });

  test.for<[Partial<SizeFields>, readonly string[]]>([
    [{ size: "2K", resolution: "1K" }, ["resolution"]],
    [{ size: "1024x1024", resolution: "2K" }, ["resolution"]],
    [{ size: "1024x1024", aspectRatio: "16:9" }, ["aspect_ratio"]],
    [{ size: "1024x1024", aspectRatio: "16:9", resolution: "4K" }, ["resolution", "aspect_ratio"]],
  ])("%j contradicts itself", ([fields, paths]) => {
    const found = read(fields);
    expect(found.issues?.map(({ path }) => path)).toEqual(paths);
    expect(found).toMatchObject({ conflict: true });
  });

  test.for<[Partial<SizeFields>, readonly string[]]>([
    [{ size: "huge" }, ["size"]],
    [{ size: "auto" }, ["size"]],
    [{ size: "1k" }, ["size"]],
    [{ size: "0x100" }, ["size"]],
    [{ size: "100x0" }, ["size"]],
    [{ size: "0100x100" }, ["size"]],
    [{ size: "-1x100" }, ["size"]],
    [{ size: "100 x 100" }, ["size"]],
    [{ size: "100X100" }, ["size"]],
    [{ size: "1e3x100" }, ["size"]],
    [{ size: "100000x1" }, ["size"]],
    [{ size: "1024x1024x1" }, ["size"]],
    [{ aspectRatio: "5:2" }, ["aspect_ratio"]],
    [{ aspectRatio: "16/9" }, ["aspect_ratio"]],
    [{ aspectRatio: "AUTO", size: "?" }, ["aspect_ratio", "size"]],
    [{ aspectRatio: "5:2", size: "1024x1024", resolution: "4K" }, ["aspect_ratio"]],
  ])("%j is no size, which is no contradiction", ([fields, paths]) => {
    const found = read(fields);
    expect(found.issues?.map(({ path }) => path)).toEqual(paths);
    expect(found).toMatchObject({ conflict: false });
  });

  test("finds a contradiction exactly where tier or ratio do not match", () => {
    const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
    fc.assert(
      fc.property(anyPixels, optional(anyRatio), optional(anyTier), (pixels, ratio, resolution) => {
        const size = `${pixels.width}x${pixels.height}`;
        const found = read({ size, aspectRatio: ratio ?? "auto", resolution });
        const fits =
          (ratio === undefined || matchesRatio(pixels, ratio)) &&
          (resolution === undefined || tierOf(pixels) === resolution);
        expect(found.issues === undefined).toBe(fits);
      }),
    );
  });

  test("of two tiers, finds a contradiction exactly where they differ, in whichever field each stands", () => {
    fc.assert(
      fc.property(anyTier, anyTier, (one, other) => {
        const found = read({ size: one, resolution: other });
        expect(found.issues === undefined).toBe(one === other);
        expect(read({ size: other, resolution: one }).issues === undefined).toBe(one === other);
      }),
    );
  });
});

describe("clamping", () => {
  test.for([
    [["1:1", "3:2", "2:3"], "16:9", "3:2"],
    [["1:1", "3:2", "2:3"], "9:21", "2:3"],
    [["1:1", "3:2", "2:3"], "5:4", "3:2"],
    [["1:1", "16:9", "9:16"], "5:4", "1:1"],
    [["1:1", "3:2", "2:3"], "4:3", "3:2"],
    [["4:5", "5:4"], "1:1", "4:5"],
    [["5:4", "4:5"], "1:1", "5:4"],
  ] as const)("of %j for %s takes %s", ([offered, wanted, taken]) => {
    expect(nearestRatio(offered, wanted)).toBe(taken);
  });

  test("takes a ratio and a tier that no other is nearer than", () => {
    const some = <T>(values: readonly T[]) => fc.shuffledSubarray([...values], { minLength: 1 });
    fc.assert(
      fc.property(some(aspectRatios), anyRatio, (offered, wanted) => {
        const far = (ratio: string) => farness(ratioOf(ratio), ratioOf(wanted));
        const taken = nearestRatio(offered, wanted);
        expect(offered).toContain(taken);
        expect(offered.every((ratio) => far(taken) <= far(ratio) + 1e-9)).toBe(true);
        if (offered.includes(wanted)) expect(taken).toBe(wanted);
      }),
    );
    fc.assert(
      fc.property(some(resolutions), anyTier, (offered, wanted) => {
        const far = (tier: (typeof resolutions)[number]) => farness(sideOf[tier], sideOf[wanted]);
        const taken = nearestTier(offered, wanted);
        expect(offered.every((tier) => far(taken) <= far(tier) + 1e-9)).toBe(true);
      }),
    );
  });
});

describe("an endpoint with a list of sizes", () => {
  const three = capabilities(list("1024x1024", "1536x1024", "1024x1536"));

  test.for<[Partial<SizeRequest>, string]>([
    [{}, "1024x1024"],
    [{ aspectRatio: "16:9" }, "1536x1024"],
    [{ aspectRatio: "9:21" }, "1024x1536"],
    [{ resolution: "4K" }, "1024x1024"],
    [{ aspectRatio: "3:2", resolution: "512" }, "1536x1024"],
    [{ pixels: { width: 1536, height: 1024 } }, "1536x1024"],
  ])("makes of %j %s", ([request, size]) => {
    const made = resolveSize(three, wish(request));
    expect(`${made?.width}x${made?.height}`).toBe(size);
  });

  test("takes the nearest tier among sizes of the nearest ratio", () => {
    const squares = capabilities(list("1024x1024", "2048x2048", "4096x2304"));
    expect(resolveSize(squares, wish({ aspectRatio: "1:1", resolution: "4K" }))?.width).toBe(2048);
    expect(resolveSize(squares, wish({ aspectRatio: "16:9", resolution: "512" }))?.width).toBe(4096);
    expect(resolveSize(squares, wish({ aspectRatio: "1:1" }))?.width).toBe(1024);
  });

  test("makes no other pixel size", () => {
    expect(offersSize(three, wish({ pixels: { width: 1536, height: 1024 } }))).toBe(true);
    expect(offersSize(three, wish({ pixels: { width: 1024, height: 1025 } }))).toBe(false);
  });

  test("has the ratios and tiers of its sizes", () => {
    expect(offeredRatios(three)).toEqual(["1:1", "2:3", "3:2"]);
    expect(offeredTiers(three)).toEqual(["1K"]);
  });
});

describe("an endpoint with a grid", () => {
  test("leaves the size to the endpoint only where nothing is asked and it can choose", () => {
    const auto = capabilities(anySizes, { autoSize: true });
    expect(resolveSize(auto, wish())).toBeUndefined();
    expect(resolveSize(auto, wish({ resolution: "2K" }))).toEqual({ width: 2048, height: 2048 });
    expect(resolveSize(auto, wish({ aspectRatio: "2:1" }))).toEqual({ width: 1448, height: 724 });
    expect(resolveSize(capabilities(anySizes), wish())).toEqual({ width: 1024, height: 1024 });
  });

  test.for([
    ["16:9", "512", 640, 360],
    ["16:9", "1K", 1280, 720],
    ["16:9", "2K", 2560, 1440],
    ["16:9", "4K", 3840, 2160],
    ["1:2", "1K", 724, 1448],
    ["21:9", "2K", 2896, 1448],
  ] as const)("makes of %s in %s %ix%i", ([aspectRatio, resolution, width, height]) => {
    expect(resolveSize(capabilities(anySizes), wish({ aspectRatio, resolution }))).toEqual({ width, height });
  });

  test.for([
    [16, 16, true],
    [17, 16, false],
    [3840, 16, false],
    [64, 3856, false],
    [3840, 2160, true],
    [3840, 2176, false],
    [96, 32, true],
    [112, 32, false],
  ])("takes %ix%i within its bounds: %s", ([width, height, offered]) => {
    const grid = { ...anySizes, multipleOf: 16, minPixels: 256, maxPixels: 3840 * 2160, maxSide: 3840 };
    const bounded = capabilities({ ...grid, maxRatio: 3 });
    expect(offersSize(bounded, wish({ pixels: { width: Number(width), height: Number(height) } }))).toBe(
      offered,
    );
  });
});

describe("every endpoint of the catalogue", () => {
  test("makes of any wish a size that it offers, and of its own ratios and tiers true ones", () => {
    for (const image of builtIn) {
      for (const ratio of aspectRatios) {
        for (const tier of resolutions) {
          const made = resolveSize(image, wish({ aspectRatio: ratio, resolution: tier }));
          if (made === undefined) throw new Error("a wish leaves nothing to the endpoint");
          expect(offersSize(image, wish({ pixels: made }))).toBe(true);
          const nearest = nearestRatio(offeredRatios(image), ratio);
          // A size beside every ratio of the interface, such as 1344x768, may be nearer still.
          const isNearer =
            farness(made.width / made.height, ratioOf(ratio)) < farness(ratioOf(nearest), ratioOf(ratio));
          expect(isNearer || matchesRatio(made, nearest), `${made.width}x${made.height} for ${ratio}`).toBe(
            true,
          );
        }
      }
    }
  });

  test("gives every tier that its bounds hold the pixels of that tier, but for the world's 4K", () => {
    for (const { sizes } of builtIn) {
      if (sizes.kind === "list") continue;
      for (const ratio of sizes.aspectRatios) {
        const longest = Math.sqrt(Math.max(ratioOf(ratio), 1 / ratioOf(ratio)));
        const isHeld = (tier: (typeof resolutions)[number]) =>
          sideOf[tier] ** 2 <= sizes.maxPixels && sideOf[tier] * longest <= sizes.maxSide;
        for (const tier of sizes.resolutions.filter(isHeld)) {
          const made = derivePixels(sizes, ratio, tier);
          const name = `${Math.max(made.width, made.height)}x${Math.min(made.width, made.height)}`;
          const known = tier === "4K" && name === "3840x2160" ? "2K" : tier;
          expect(tierOf(made), `${ratio} in ${tier}`).toBe(known);
        }
      }
    }
  });

  test("has even sides whatever the tier and ratio, and more of them in a larger tier", () => {
    for (const { sizes } of builtIn) {
      if (sizes.kind === "list") continue;
      for (const ratio of sizes.aspectRatios) {
        const made = resolutions.map((tier) => derivePixels(sizes, ratio, tier));
        for (const { width, height } of made) expect([width % 2, height % 2], ratio).toEqual([0, 0]);
        const areas = made.map(({ width, height }) => width * height);
        expect(areas, ratio).toEqual(areas.toSorted((a, b) => a - b));
      }
    }
  });
});

test("derived pixels lie on the grid and within its bounds, and turn with the ratio", () => {
  const grids = fc.record({
    multipleOf: fc.constantFrom(1, 2, 3, 8, 16, 32),
    maxSide: fc.integer({ min: 2048, max: 12_000 }),
    megapixels: fc.integer({ min: 2, max: 16 }),
  });
  fc.assert(
    fc.property(grids, anyRatio, anyTier, ({ multipleOf, maxSide, megapixels }, ratio, tier) => {
      const grid = { ...anySizes, multipleOf, maxSide, minPixels: 1024, maxPixels: megapixels * 1_000_000 };
      const { width, height } = derivePixels(grid, ratio, tier);
      expect([width % multipleOf, height % multipleOf]).toEqual([0, 0]);
      expect([width % 2, height % 2]).toEqual([0, 0]);
      expect(Math.max(width, height)).toBeLessThanOrEqual(maxSide);
      expect(width * height).toBeLessThanOrEqual(grid.maxPixels);
      // Half a step of the grid on the shorter side, and no more than the eye forgives.
      const step = (multipleOf % 2 === 0 ? multipleOf : 2 * multipleOf) / Math.min(width, height);
      expect(farness(width / height, ratioOf(ratio))).toBeLessThanOrEqual(Math.max(0.01, step));
      const [across, down] = ratio.split(":");
      const turned = aspectRatios.find((other) => other === `${down}:${across}`);
      if (turned !== undefined) {
        expect(derivePixels(grid, turned, tier)).toEqual({ width: height, height: width });
      }
    }),
  );
});

describe("the usual pixels", () => {
  test("are of their ratio and their tier, but for the world's 4K, and turn with the ratio", () => {
    let known = 0;
    for (const ratio of aspectRatios) {
      for (const tier of resolutions) {
        const usual = usualSize(ratio, tier);
        if (usual === undefined) continue;
        known++;
        const { width, height } = usual;
        const isUltraHd = Math.max(width, height) === 3840 && Math.min(width, height) === 2160;
        expect(matchesRatio(usual, ratio), `${ratio} in ${tier}`).toBe(true);
        expect(tierOf(usual), `${ratio} in ${tier}`).toBe(isUltraHd ? "2K" : tier);
        const [across, down] = ratio.split(":");
        const turned = aspectRatios.find((other) => other === `${down}:${across}`) ?? ratio;
        expect(usualSize(turned, tier)).toEqual({ width: height, height: width });
      }
    }
    expect(known).toBeGreaterThan(10);
  });

  test("give way where an endpoint's grid or bounds don't hold them", () => {
    const grid = { ...anySizes, multipleOf: 16, maxPixels: 2560 * 1440 };
    expect(derivePixels(grid, "16:9", "2K")).toEqual({ width: 2560, height: 1440 });
    const small = derivePixels({ ...grid, maxPixels: 3_000_000 }, "16:9", "2K");
    expect(small.width * small.height).toBeLessThanOrEqual(3_000_000);
    expect(matchesRatio(small, "16:9")).toBe(true);
    // 360 is no multiple of 16.
    expect(derivePixels(grid, "16:9", "512")).not.toEqual({ width: 640, height: 360 });
  });

  test("of 4K can be named as pixels, but beside that tier only as the rule of pixels calls them", () => {
    expect(read({ size: "3840x2160", aspectRatio: "16:9", resolution: "2K" }).issues).toBeUndefined();
    expect(read({ size: "3840x2160", resolution: "4K" })).toMatchObject({ conflict: true });
  });
});
