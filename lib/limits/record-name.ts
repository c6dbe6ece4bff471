/** Longest name that people give a record, Unicode code points. */
export const maxNameCharacters = 256;

/** What is wrong with a name for people, which is on one line and not blank; undefined when nothing is. */
export function nameFault(name: string): string | undefined {
  if (name.trim() === "") return "must not be empty";
  if (Array.from(name).length > maxNameCharacters)
    return `must not be longer than ${maxNameCharacters} characters`;
  return name.isWellFormed() && !/\p{Cc}/u.test(name) ? undefined : "must not contain control characters";
}
