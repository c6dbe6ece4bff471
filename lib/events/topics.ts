import type { TopicSettings } from "./bus.ts";

/** The topic that generation events travel on, keyed by account id. */
export const generationEventsTopic = "media.generation-events.v1";

/** Where messages of a topic go that a group can't apply, with the reason in their headers. */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dead-letter`;
}

/** The groups that read generation events. */
export const groups = {
  account: "media.account",
  usage: "media.usage",
  destination: "media.destination",
} as const;

/** How all topics are laid out. */
export type TopicLayout = Omit<TopicSettings, "name">;

/** Every topic of the system. */
export function allTopics(layout: TopicLayout): readonly TopicSettings[] {
  return [generationEventsTopic, deadLetterTopicOf(generationEventsTopic)].map((name) => ({
    name,
    ...layout,
  }));
}
