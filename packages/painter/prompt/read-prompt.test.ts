import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { colorWords } from "./color-words.ts";
import { readPrompt } from "./read-prompt.ts";
import { subjectWords } from "./subject-words.ts";
import { lookUp } from "./vocabulary.ts";

const subjectsOf = (prompt: string) =>
  readPrompt(prompt).subjects.map(({ name, count, colors }) => ({ name, count, colors }));
const { red, blue, green, yellow, white } = colorWords;

describe("readPrompt", () => {
  it.each([
    ["a dog and a cat", ["dog", "cat"]],
    ["Puppies beside a lighthouse!", ["dog", "lighthouse"]],
    ["hot-air balloon, teapots", ["balloon", "teapot"]],
    ["two wolves and a flock of geese", ["wolf", "duck"]],
    ["CAFÉ: a cup", ["cup"]],
  ])("finds what %j names", (prompt, names) => {
    expect(readPrompt(prompt).subjects.map(({ name }) => name)).toEqual(names);
  });

  it.each([
    ["a cat", 1],
    ["cats", 3],
    ["seven cats", 7],
    ["5 cats", 5],
    ["a pair of cats", 2],
    ["1000 cats", 9],
    ["0 cats", 1],
  ])("counts %j", (prompt, count) => {
    expect(subjectsOf(prompt)).toEqual([{ name: "cat", count, colors: [] }]);
  });

  it("gives colours to their own nouns", () => {
    const { subjects, sky, colors } = readPrompt("a blue sky over a red house and an old green wooden boat");
    expect(sky.get("sky")).toEqual([blue]);
    expect(subjects.map((subject) => subject.colors)).toEqual([[red], [green]]);
    expect(colors).toEqual([]);
  });

  it.each([
    ["a balloon, red and white, over hills", [red, white]],
    ["the balloon is yellow", [yellow]],
    ["a balloon painted blue", [blue]],
    ["three red, green and blue balloons", [red, green, blue]],
  ])("follows the colours of %j", (prompt, colors) => {
    expect(subjectsOf(prompt)[0]?.colors).toEqual(colors);
  });

  it("keeps colours that belong to nothing for the picture, and weakens or deepens them", () => {
    expect(readPrompt("shades of blue").colors).toEqual([blue]);
    const [light] = readPrompt("light blue dreams").colors;
    expect(light?.l).toBeGreaterThan((blue?.l ?? 1) + 0.1);
    const [dark] = readPrompt("dark blue dreams").colors;
    expect(dark?.l).toBeLessThan((blue?.l ?? 0) - 0.1);
  });

  it("knows the fruit from the colour", () => {
    expect(subjectsOf("an orange on a table")).toMatchObject([{ name: "orange", count: 1 }]);
    expect(subjectsOf("an orange boat")).toEqual([
      { name: "sailboat", count: 1, colors: [colorWords.orange] },
    ]);
  });

  it("finds times, seasons, weather, sights of the sky and places", () => {
    const reading = readPrompt("northern lights over a foggy lake and mountains at dusk in winter");
    expect(reading).toMatchObject({ time: "dusk", season: "winter" });
    expect([...reading.weather]).toEqual(["fog"]);
    expect([...reading.sky.keys()]).toEqual(["aurora"]);
    expect([...reading.places.keys()]).toEqual(["lake", "mountains"]);
  });

  it("leaves out what is not wanted", () => {
    const reading = readPrompt("a beach without any birds, no clouds");
    expect(reading.subjects).toEqual([]);
    expect(reading.sky.size).toBe(0);
    expect([...reading.places.keys()]).toEqual(["beach"]);
  });

  it("leaves out the eleventh kind of thing", () => {
    const names = Object.keys(subjectWords).filter((name) => name !== "vase" && name !== "orange");
    expect(readPrompt(names.join(", ")).subjects).toHaveLength(10);
  });

  it("puts riders on what they ride, and flowers into their vase", () => {
    expect(readPrompt("a cat riding a unicorn").subjects[0]?.carrier).toBe("unicorn");
    expect(subjectsOf("roses in a blue vase")).toEqual([{ name: "vase", count: 1, colors: [blue] }]);
  });

  it("understands nothing where there is nothing to understand", () => {
    const { subjects, places, sky, weather } = readPrompt("justice, memory: 正義 🎉");
    expect([subjects.length, places.size, sky.size, weather.size]).toEqual([0, 0, 0, 0]);
  });

  it.each<[string, readonly string[]]>([
    ["three red balloons over a lake, and the sky is blue", []],
    ["a picture of a light blue house without any birds", []],
    ["a gryphon near the old lighthouse, photorealistic", ["gryphon", "old", "photorealistic"]],
    ["Gryphon, gryphon and GRYPHON's nest", ["gryphon", "nest"]],
    ["a cat in the soft light of morning", ["soft", "light"]],
    ["a naïve façade, straße 7", ["naive", "facade", "straße"]],
    [
      "justice, memory: 正義 🎉 справедливость が नमस्ते 한국",
      ["justice", "memory", "正義", "справедливость", "が", "नमस्ते", "한국"],
    ],
    ["", []],
  ])("says what of %j it did not understand", (prompt, words) => {
    expect(readPrompt(prompt).unrecognized).toEqual(words);
  });

  it("reads anything without failing, words of objects' own properties too", () => {
    readPrompt("constructor __proto__ toString hasOwnProperty valueOf");
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (prompt) => void readPrompt(prompt)),
    );
    const words = fc.array(
      fc.constantFrom(
        ...Object.keys(subjectWords),
        "red",
        "no",
        "is",
        ",",
        "of",
        "two",
        "riding",
        "an",
        "orange",
      ),
    );
    fc.assert(fc.property(words, (list) => void readPrompt(list.join(" "))));
  });
});

describe("the vocabulary", () => {
  it("finds every drawing by a word", () => {
    for (const [name, words] of Object.entries(subjectWords)) {
      const found = words.split(" ").map((word) => lookUp(word)?.meaning);
      expect(found, name).toContainEqual({ kind: "subject", name });
    }
  });
});
