/**
 * Counts what a protobuf message holds before it is decoded: two bytes of an empty item become an object of more than
 * a hundred, and each takes a microsecond.
 *
 * 1. It walks the wire format by the descriptor, as the decoder would: what the decoder makes an object of is counted,
 *    what it skips is skipped.
 * 2. It stops at the first bound that is passed, so a scan costs no more than the largest message within the bounds.
 * 3. Groups, which no message of ours has, are refused. What else the decoder refuses it need not find.
 * Source: https://protobuf.dev/programming-guides/encoding/
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** What a message may hold. */
export interface WireBounds {
  /** Messages, items of lists, entries of maps, texts and unknown fields together. */
  readonly maxElements: number;
  /** Of all texts together. */
  readonly maxTextBytes: number;
  /** Messages within each other; 1 is the message itself. Entries of maps are none. */
  readonly maxDepth: number;
}

/** Of numbers that repeat, which cost time alone; far more than any message of ours has fields. */
const maxFields = 100_000;

const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireFixed32 = 5;

/** How a field is counted: not at all, by itself, by its packed items, or by what is within. */
type FieldPlan =
  | { readonly kind: "number" }
  | { readonly kind: "element" }
  | { readonly kind: "text" }
  | { readonly kind: "packed"; readonly itemBytes: number | undefined }
  | { readonly kind: "message"; readonly depth: number; readonly fields: () => FieldPlans };

type FieldPlans = ReadonlyMap<number, FieldPlan>;

const element: FieldPlan = { kind: "element" };
const text: FieldPlan = { kind: "text" };
const number: FieldPlan = { kind: "number" };

/** Looks for faults in messages, and remembers how messages of a type are walked. */
export class WireScanner {
  readonly #plans = new WeakMap<DescMessage, FieldPlans>();

  /** The fault of a message that holds more than it may, or ends amid a field; undefined when it may be decoded. */
  findFault(message: DescMessage, bytes: Uint8Array, bounds: WireBounds): string | undefined {
    try {
      new Scan(bytes, bounds).walk(this.#plansOf(message), bytes.length, 1);
      return undefined;
    } catch (thrown) {
      if (thrown instanceof WireFault) return thrown.message;
      throw thrown;
    }
  }

  #plansOf(message: DescMessage): FieldPlans {
    let plans = this.#plans.get(message);
    if (plans === undefined) {
      plans = new Map(message.fields.map((field) => [field.number, this.#planOf(field)]));
      this.#plans.set(message, plans);
    }
    return plans;
  }

  #planOf(field: DescField): FieldPlan {
    switch (field.fieldKind) {
      case "message":
        return this.#planOfMessage(field.message);
      case "list": {
        if (field.listKind === "message") return this.#planOfMessage(field.message);
        const { scalar } = field;
        return planOfText(scalar) ?? { kind: "packed", itemBytes: itemBytesOf(scalar) };
      }
      case "map": {
        const { message, mapKey, scalar } = field;
        const value = message === undefined ? (planOfText(scalar) ?? element) : this.#planOfMessage(message);
        const entry: FieldPlans = new Map([
          [1, planOfText(mapKey) ?? element],
          [2, value],
        ]);
        return { kind: "message", depth: 0, fields: () => entry };
      }
      case "scalar":
        return planOfText(field.scalar) ?? number;
      default:
        return number;
    }
  }

  #planOfMessage(message: DescMessage): FieldPlan {
    return { kind: "message", depth: 1, fields: () => this.#plansOf(message) };
  }
}

class WireFault extends Error {}

class Scan {
  readonly #bytes: Uint8Array;
  readonly #bounds: WireBounds;
  #at = 0;
  #elements = 0;
  #textBytes = 0;
  #fields = 0;

  constructor(bytes: Uint8Array, bounds: WireBounds) {
    this.#bytes = bytes;
    this.#bounds = bounds;
  }

  walk(plans: FieldPlans, end: number, depth: number): void {
    if (depth > this.#bounds.maxDepth) {
      throw new WireFault(`must not be nested deeper than ${this.#bounds.maxDepth} messages`);
    }
    while (this.#at < end) {
      const tag = this.#varint();
      const wireType = tag & 7;
      const plan = plans.get(tag >>> 3) ?? element;
      this.#fields += 1;
      if (this.#fields > maxFields) throw new WireFault(`must not have more than ${maxFields} fields`);
      const isPacked = plan.kind === "packed" && wireType === wireBytes;
      if (plan.kind !== "number" && !isPacked) this.#count(1); // 1.
      this.#passField(plan, wireType, end, depth);
      if (this.#at > end) throw new WireFault("ends amid a field");
    }
  }

  #passField(plan: FieldPlan, wireType: number, end: number, depth: number): void {
    switch (wireType) {
      case wireVarint:
        this.#varint();
        return;
      case wireFixed64:
        this.#at += 8;
        return;
      case wireFixed32:
        this.#at += 4;
        return;
      case wireBytes: {
        const length = this.#varint();
        const fieldEnd = this.#at + length;
        if (fieldEnd > end) throw new WireFault("ends amid a field");
        if (plan.kind === "message") this.walk(plan.fields(), fieldEnd, depth + plan.depth);
        else if (plan.kind === "text") this.#countText(length);
        else if (plan.kind === "packed") this.#countPacked(plan.itemBytes, length, fieldEnd);
        this.#at = fieldEnd;
        return;
      }
      default:
        throw new WireFault("has a field of an unknown kind"); // 3.
    }
  }

  #count(elements: number): void {
    this.#elements += elements;
    const { maxElements } = this.#bounds;
    if (this.#elements > maxElements) throw new WireFault(`must not have more than ${maxElements} values`); // 2.
  }

  #countText(bytes: number): void {
    this.#textBytes += bytes;
    const { maxTextBytes } = this.#bounds;
    if (this.#textBytes > maxTextBytes)
      throw new WireFault(`must not have more than ${maxTextBytes} bytes of text`);
  }

  #countPacked(itemBytes: number | undefined, length: number, end: number): void {
    if (itemBytes !== undefined) {
      this.#count(Math.ceil(length / itemBytes));
      return;
    }
    for (let at = this.#at; at < end; at += 1) {
      if ((this.#bytes[at] ?? 0) < 0x80) this.#count(1);
    }
  }

  /** Its lower 32 bits, of at most ten bytes. */
  #varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new WireFault("ends amid a field");
      this.#at += 1;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new WireFault("has a number of more than ten bytes");
  }
}

function planOfText(scalar: ScalarType | undefined): FieldPlan | undefined {
  if (scalar === ScalarType.STRING) return text;
  return scalar === ScalarType.BYTES ? element : undefined;
}

/** Undefined for numbers whose length varies, enums among them. */
function itemBytesOf(scalar: ScalarType | undefined): number | undefined {
  switch (scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return 8;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return 4;
    default:
      return undefined;
  }
}
