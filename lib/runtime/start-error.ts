/** A start that can't succeed for a reason that its operator can mend; the message is one clear line. */
export class StartError extends Error {
  override readonly name = "StartError";
}
