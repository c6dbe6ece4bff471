import type { ErrorPhrases } from "../upstream/failure.ts";

/**
 * What xAI's texts mean. Its codes are those of gRPC in words: "Client specified an invalid argument" is a wrong size as well as
 * a wrong key, "Some resource has been exhausted" a limit as well as a balance. docs.x.ai, "Debugging errors".
 */
export const phrases: ErrorPhrases = [
  [/incorrect api key/i, "credentials"],
  [/available credits|any credits|spending limit/i, "credentials"],
  [/content moderation|usage guidelines/i, "content_policy"],
];
