import type { SubjectName } from "../prompt/subject-words.ts";
import { bears } from "./animals/bears.ts";
import { birds } from "./animals/birds.ts";
import { horses } from "./animals/horses.ts";
import { savannaAnimals } from "./animals/savanna-animals.ts";
import { seaAnimals } from "./animals/sea-animals.ts";
import { sittingAnimals } from "./animals/sitting-animals.ts";
import { walkingAnimals } from "./animals/walking-animals.ts";
import { buildings } from "./buildings.ts";
import type { Drawing } from "./drawing.ts";
import { emblems } from "./emblems.ts";
import { figures } from "./figures.ts";
import { food } from "./food.ts";
import { furniture } from "./furniture.ts";
import { household } from "./household.ts";
import { landmarks } from "./landmarks.ts";
import { flowers } from "./plants/flowers.ts";
import { fruit } from "./plants/fruit.ts";
import { plants } from "./plants/plants.ts";
import { trees } from "./plants/trees.ts";
import { towers } from "./towers.ts";
import { vehicles } from "./vehicles.ts";
import { vessels } from "./vessels.ts";

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
