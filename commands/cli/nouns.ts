import type { Noun } from "./command.ts";
import { account, member } from "./nouns/account.ts";
import { activity } from "./nouns/activity.ts";
import { audit } from "./nouns/audit.ts";
import { books } from "./nouns/books.ts";
import { consoleLink } from "./nouns/console-link.ts";
import { credit } from "./nouns/credit.ts";
import { database } from "./nouns/database.ts";
import { destination } from "./nouns/destination.ts";
import { doctor } from "./nouns/doctor.ts";
import { hold } from "./nouns/hold.ts";
import { key } from "./nouns/key.ts";
import { model } from "./nouns/model.ts";
import { provider } from "./nouns/provider.ts";
import { request } from "./nouns/request.ts";
import { providerKey, serviceKey } from "./nouns/sealed.ts";
import { deadLetter, topic } from "./nouns/topic.ts";
import { usage } from "./nouns/usage.ts";

/** All that commands are about, in the order of help. */
export const nouns: readonly Noun[] = [
  account,
  member,
  key,
  consoleLink,
  credit,
  hold,
  usage,
  request,
  model,
  provider,
  providerKey,
  destination,
  audit,
  books,
  activity,
  doctor,
  database,
  topic,
  deadLetter,
  serviceKey,
];
