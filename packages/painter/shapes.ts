/** A number as SVG wants it, to a tenth; whatever is drawn is about a thousand units wide. */
export function num(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** A filled path. */
export function path(d: string, fill: string, extra = ""): string {
  return `<path d="${d}" fill="${fill}"${spaced(extra)}/>`;
}

/** A line along a path, with round ends. */
export function stroke(d: string, color: string, width: number, extra = ""): string {
  const look = `fill="none" stroke="${color}" stroke-width="${num(width)}"`;
  return `<path d="${d}" ${look} stroke-linecap="round" stroke-linejoin="round"${spaced(extra.replace("fill-opacity", "stroke-opacity"))}/>`;
}

/** A rectangle, its corners rounded by `radius`. */
export function rect(
  x: number,
  y: number,
  width: number,
  height: number,
  fill: string,
  radius = 0,
  extra = "",
): string {
  const round = radius === 0 ? "" : ` rx="${num(radius)}"`;
  return `<rect x="${num(x)}" y="${num(y)}" width="${num(width)}" height="${num(height)}"${round} fill="${fill}"${spaced(extra)}/>`;
}

/** A disc. */
export function circle(x: number, y: number, radius: number, fill: string, extra = ""): string {
  return `<circle cx="${num(x)}" cy="${num(y)}" r="${num(radius)}" fill="${fill}"${spaced(extra)}/>`;
}

/** An ellipse along the axes. */
export function ellipse(x: number, y: number, rx: number, ry: number, fill: string, extra = ""): string {
  return `<ellipse cx="${num(x)}" cy="${num(y)}" rx="${num(rx)}" ry="${num(ry)}" fill="${fill}"${spaced(extra)}/>`;
}

/** A polygon; its points as SVG writes them. */
export function polygon(points: string, fill: string, extra = ""): string {
  return `<polygon points="${points}" fill="${fill}"${spaced(extra)}/>`;
}

/** A closed outline that runs smoothly through points given as x, y, x, y … */
export function blob(points: readonly number[], fill: string, extra = ""): string {
  return path(`${smooth(points, true)}Z`, fill, extra);
}

/** A path that runs smoothly through points given as x, y, x, y …: Catmull-Rom as Bézier curves. */
export function smooth(points: readonly number[], closed = false): string {
  const count = points.length / 2;
  const at = (index: number): [number, number] => {
    const i = closed ? (index + count) % count : Math.min(count - 1, Math.max(0, index));
    return [points[2 * i] ?? 0, points[2 * i + 1] ?? 0];
  };
  const parts = [`M${at(0).map(num).join(" ")}`];
  for (let i = 0; i < (closed ? count : count - 1); i++) {
    const [[ax, ay], [bx, by], [cx, cy], [dx, dy]] = [at(i - 1), at(i), at(i + 1), at(i + 2)];
    const handles = [bx + (cx - ax) / 6, by + (cy - ay) / 6, cx - (dx - bx) / 6, cy - (dy - by) / 6];
    parts.push(`C${[...handles, cx, cy].map(num).join(" ")}`);
  }
  return parts.join("");
}

/** Straight lines through points given as x, y, x, y … */
export function straight(points: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < points.length; i += 2) {
    parts.push(`${i === 0 ? "M" : "L"}${num(points[i] ?? 0)} ${num(points[i + 1] ?? 0)}`);
  }
  return parts.join("");
}

/** Shapes together, with attributes. */
export function group(attributes: string, ...children: readonly string[]): string {
  return `<g ${attributes}>${children.join("")}</g>`;
}

/** How a drawing is put into the picture. */
export interface Placing {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
  /** Mirrored, left for right. */
  readonly flip?: boolean;
  /** Degrees clockwise. */
  readonly turn?: number;
}

/** A drawing at its place; its own origin comes to stand at x, y. */
export function placed(markup: string, { x, y, scale, flip = false, turn = 0 }: Placing): string {
  const size = Math.round(scale * 1000) / 1000;
  const rotate = turn === 0 ? "" : ` rotate(${num(turn)})`;
  return `<g transform="translate(${num(x)} ${num(y)})${rotate} scale(${flip ? -size : size} ${size})">${markup}</g>`;
}

/**
 * The attribute of a given opacity of one shape: that of its fill (stroke() makes it that of the line). Drawn by itself,
 * unlike `opacity`, for which renderers make a picture of its own.
 */
export function opacity(value: number): string {
  return `fill-opacity="${Math.round(value * 100) / 100}"`;
}

/** The attribute of a given opacity of shapes as a whole; dear, for few of them. */
export function groupOpacity(value: number): string {
  return `opacity="${Math.round(value * 100) / 100}"`;
}

function spaced(extra: string): string {
  return extra === "" ? "" : ` ${extra}`;
}
