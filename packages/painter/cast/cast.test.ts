import { describe, expect, it } from "vitest";
import { inkExtent } from "../__fixtures__/ink-extent.ts";
import { type PaintRequest, paintSvg } from "../paint-svg.ts";
import { type SubjectName, subjectWords } from "../prompt/subject-words.ts";

/** The drawings of all subjects of a picture: without what shines, and without shadows, wakes and rocks beside them. */
function subjectsOf(svg: string): string {
  const layers = [...svg.matchAll(/<g id="subject-/g)].map(({ index }) =>
    svg.slice(index, endOfGroup(svg, index)),
  );
  return layers
    .map((layer) =>
      layer.replace(/^(<g id="[^"]*">)(<\w+ [^>]*\/>)*/, "$1").replace(/(<ellipse [^>]*\/>)*<\/g>$/, "</g>"),
    )
    .join("")
    .replace(/fill="url\([^"]*"/g, 'fill="none"')
    .replace(/clip-path="[^"]*"/g, "");
}

function endOfGroup(svg: string, start: number): number {
  let depth = 0;
  for (const { 0: tag, index } of svg.slice(start).matchAll(/<\/?g[ >]/g)) {
    depth += tag.startsWith("</") ? -1 : 1;
    if (depth === 0) return start + index + tag.length;
  }
  throw new Error("a group without an end");
}

/** That all of it lies within the picture. */
async function expectWhole(
  request: Pick<PaintRequest, "prompt" | "width" | "height" | "transparent">,
): Promise<void> {
  const svg = paintSvg({ ...request, seed: "1", quality: "low", palette: [], look: "plain" });
  const [, width = 0, height = 0] = (/viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg) ?? []).map(Number);
  const frame = { left: -width / 2, right: width * 1.5, top: -height / 2, bottom: height * 1.5 };
  const { left, right, top, bottom } = await inkExtent(subjectsOf(svg), frame);
  const pixel = (Math.max(width, height) * 2) / 240;
  const whole = left > -pixel && top > -pixel && right < width + pixel && bottom < height + pixel;
  expect({ ...request, whole }).toEqual({ ...request, whole: true });
}

/** Each subject once or five times. */
function promptsOf(article: "a" | "five"): string[] {
  return Object.keys(subjectWords).map((name) => {
    const word = subjectWords[name as SubjectName].split(" ")[0]?.replaceAll("-", " ");
    if (name === "orange") return article === "a" ? "an orange on a table" : "five oranges";
    return article === "a" ? `a ${word}` : `five ${word}s`;
  });
}

describe.each([
  [256, 256],
  [256, 64],
  [64, 256],
])("subjects in a picture of %d by %d", (width, height) => {
  it("are whole when they are cut out", async () => {
    for (const prompt of promptsOf("a")) await expectWhole({ prompt, width, height, transparent: true });
  });

  it("are whole in a scene, also where there is little room for many", async () => {
    for (const prompt of promptsOf("five")) await expectWhole({ prompt, width, height, transparent: false });
  });
});
