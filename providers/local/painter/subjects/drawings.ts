import type { SubjectName } from "../subject-words.ts";
import { bears } from "./bears.ts";
import { birds } from "./birds.ts";
import { buildings } from "./buildings.ts";
import type { Drawing } from "./drawing.ts";
import { emblems } from "./emblems.ts";
import { figures } from "./figures.ts";
import { flowers } from "./flowers.ts";
import { food } from "./food.ts";
import { fruit } from "./fruit.ts";
import { furniture } from "./furniture.ts";
import { horses } from "./horses.ts";
import { household } from "./household.ts";
import { landmarks } from "./landmarks.ts";
import { plants } from "./plants.ts";
import { savannaAnimals } from "./savanna-animals.ts";
import { seaAnimals } from "./sea-animals.ts";
import { sittingAnimals } from "./sitting-animals.ts";
import { towers } from "./towers.ts";
import { trees } from "./trees.ts";
import { vehicles } from "./vehicles.ts";
import { vessels } from "./vessels.ts";
import { walkingAnimals } from "./walking-animals.ts";

/** Everything that the painter can draw as a subject, by name. */
export const drawings: Readonly<Record<SubjectName, Drawing>> = {
  ...buildings,
  ...savannaAnimals,
  ...horses,
  ...bears,
  ...trees,
  ...furniture,
  ...fruit,
  ...towers,
  ...landmarks,
  ...vessels,
  ...vehicles,
  ...plants,
  ...flowers,
  ...sittingAnimals,
  ...walkingAnimals,
  ...birds,
  ...seaAnimals,
  ...figures,
  ...household,
  ...food,
  ...emblems,
};
