import { type Lch, toHex } from "./color/color.ts";
import { group } from "./shapes.ts";

/** One colour of a gradient. */
export interface Stop {
  /** 0 to 1. */
  readonly at: number;
  readonly color: Lch | string;
  /** 1 unless given. */
  readonly opacity?: number;
}

/** Collects an SVG: layers in the order in which they are added, and what they refer to. */
export class Canvas {
  readonly width: number;
  readonly height: number;
  readonly #definitions: string[] = [];
  readonly #layers: string[] = [];
  #clip = "";

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
  }

  /** A gradient from top to bottom of what it fills (or along `direction`: x1, y1, x2, y2 as parts of it), as a fill. */
  linear(
    stops: readonly Stop[],
    direction: readonly [number, number, number, number] = [0, 0, 0, 1],
  ): string {
    const [x1, y1, x2, y2] = direction;
    return this.#gradient("linearGradient", `x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"`, stops);
  }

  /** A gradient from the middle of what it fills to its edge, as a fill. */
  radial(stops: readonly Stop[]): string {
    return this.#gradient("radialGradient", "", stops);
  }

  /** An outline to clip with, as the attribute that does so. */
  clip(shape: string): string {
    const id = `c${this.#definitions.length}`;
    this.#definitions.push(`<clipPath id="${id}">${shape}</clipPath>`);
    return `clip-path="url(#${id})"`;
  }

  /** Clips all layers with an attribute of clip(). */
  clipAll(attribute: string): void {
    this.#clip = attribute;
  }

  /** Adds a layer above those before; nothing if it is empty. */
  layer(id: string, ...markup: readonly string[]): void {
    const content = markup.join("");
    if (content !== "") this.#layers.push(group(`id="${id}"`, content));
  }

  /** The whole as one document of this many pixels. */
  toSvg(pixelWidth: number, pixelHeight: number, title: string): string {
    const box = `viewBox="0 0 ${this.width} ${this.height}" preserveAspectRatio="none"`;
    const content = this.#clip === "" ? this.#layers.join("") : group(this.#clip, ...this.#layers);
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${pixelWidth}" height="${pixelHeight}" ${box}>`,
      `<title>${escapeText(title)}</title><defs>${this.#definitions.join("")}</defs>${content}</svg>`,
    ].join("");
  }

  #gradient(element: string, geometry: string, stops: readonly Stop[]): string {
    const id = `g${this.#definitions.length}`;
    const markup = stops.map(({ at, color, opacity = 1 }) => {
      const hex = typeof color === "string" ? color : toHex(color);
      const fade = opacity === 1 ? "" : ` stop-opacity="${Math.round(opacity * 1000) / 1000}"`;
      return `<stop offset="${Math.round(at * 1000) / 1000}" stop-color="${hex}"${fade}/>`;
    });
    this.#definitions.push(`<${element} id="${id}" ${geometry}>${markup.join("")}</${element}>`);
    return `url(#${id})`;
  }
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Text that is safe in XML: markup escaped, what XML 1.0 does not allow dropped, no longer than 300 characters. */
function escapeText(text: string): string {
  const allowed = [...text.toWellFormed()].filter(
    (character) => !/[\p{Cc}\p{Cn}\p{Cs}\ufffe\uffff]/u.test(character),
  );
  return allowed
    .slice(0, 300)
    .join("")
    .replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
