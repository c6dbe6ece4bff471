import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readMasterKeys } from "./master-keys.ts";
import { createSealer, SealError, type SealFault } from "./seal.ts";

const keyText = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const oldKeys = readMasterKeys(`old:${keyText(1)}`);
const bothKeys = readMasterKeys(`new:${keyText(2)},old:${keyText(1)}`);
const sealer = createSealer(oldKeys);
const record = ["provider_key", "account", "id"];
const text = fc.string({ unit: "grapheme", maxLength: 200 });
const texts = fc.array(fc.string({ unit: "grapheme", maxLength: 20 }), { maxLength: 4 });

function faultOf(open: () => string): SealFault | undefined {
  try {
    open();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof SealError) return thrown.fault;
    throw thrown;
  }
}

describe("a sealed secret", () => {
  test("opens to what it was, for the record it was sealed for", () => {
    fc.assert(
      fc.property(text, texts, (secret, associated) => {
        expect(sealer.open(sealer.seal(secret, associated), associated)).toBe(secret);
      }),
    );
  });

  test("does not show it, and never looks the same twice", () => {
    const secret = "a-secret-that-is-long-enough-to-be-found";
    const [first, second] = [sealer.seal(secret, record), sealer.seal(secret, record)];
    expect(first.equals(second)).toBe(false);
    for (const sealed of [first, second]) expect(sealed.toString("latin1")).not.toContain(secret.slice(0, 8));
  });

  test("opens for no other record", () => {
    fc.assert(
      fc.property(texts, texts, (associated, other) => {
        fc.pre(JSON.stringify(associated) !== JSON.stringify(other));
        const sealed = sealer.seal("secret", associated);
        expect(faultOf(() => sealer.open(sealed, other))).toBe("not_authentic");
      }),
    );
    const sealed = sealer.seal("secret", ["a", "b"]);
    for (const other of [["ab"], ["a,b"], ["b", "a"], ["a", "b", ""], []]) {
      expect(faultOf(() => sealer.open(sealed, other))).toBe("not_authentic");
    }
  });

  test("does not open once any bit of it was changed, or any byte is missing", () => {
    const sealed = sealer.seal("secret", record);
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(faultOf(() => sealer.open(changed, record))).toBeDefined();
    }
    for (let length = 0; length < sealed.length; length += 1) {
      expect(faultOf(() => sealer.open(sealed.subarray(0, length), record))).toBeDefined();
    }
    expect(faultOf(() => sealer.open(Buffer.concat([sealed, Buffer.alloc(1)]), record))).toBe(
      "not_authentic",
    );
  });

  test("that is no sealed secret at all is malformed", () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.alloc(100),
      Buffer.from([1, 0]),
      Buffer.from("plain text"),
    ]) {
      expect(faultOf(() => sealer.open(bytes, record))).toBe("malformed");
      expect(faultOf(() => sealer.keyIdOf(bytes))).toBe("malformed");
    }
  });

  test("stays readable: its form is fixed", () => {
    const sealed = createSealer(oldKeys, (size) => Buffer.alloc(size, 9)).seal("secret", record);
    expect(sealed.toString("hex")).toBe(
      "01036f6c6409090909090909090909090990c8f57edfc643b7f749c797b5f0b3aab76a44bcab44",
    );
  });
});

describe("master keys", () => {
  test("rotate: the first seals, all open", () => {
    const rotated = createSealer(bothKeys);
    const sealed = sealer.seal("secret", record);
    expect(rotated.open(sealed, record)).toBe("secret");
    expect([rotated.keyIdOf(sealed), rotated.keyId]).toEqual(["old", "new"]);
    const again = rotated.seal("secret", record);
    expect(rotated.keyIdOf(again)).toBe("new");
    expect(createSealer(readMasterKeys(`new:${keyText(2)}`)).open(again, record)).toBe("secret");
    expect(faultOf(() => sealer.open(again, record))).toBe("key_unknown");
  });

  test("of the same name that differ do not open each other's", () => {
    const other = createSealer(readMasterKeys(`old:${keyText(3)}`));
    expect(faultOf(() => other.open(sealer.seal("secret", record), record))).toBe("not_authentic");
  });

  test("and secrets stand in no error and no inspection", () => {
    const sealed = sealer.seal("a-canary-secret", record);
    let thrown: unknown;
    try {
      sealer.open(sealed, []);
    } catch (error) {
      thrown = error;
    }
    const shown = inspect([thrown, oldKeys, sealer], { depth: 9, showHidden: true });
    expect(shown).toContain("SealError");
    for (const secret of ["a-canary-secret", keyText(1), Buffer.alloc(4, 1).toString("hex"), "01 01 01 01"]) {
      expect(shown).not.toContain(secret);
    }
  });
});
