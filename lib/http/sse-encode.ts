/**
 * Encodes an event stream (WHATWG HTML, "Server-sent events"). A large event is written piece by piece: `eventStart`,
 * its data without line breaks in as many pieces as wanted, `eventEnd`; clients drop one that lacks its end.
 */

/** Begins an event of one line of data. */
export const eventStart = "data: ";

/** Ends an event. */
export const eventEnd = "\n\n";

/** The media type of an event stream. */
export const eventStreamType = "text/event-stream";

/** A whole event; each line of the data becomes one of its own, as the format wants it. */
export function encodeServerSentEvent(data: string): string {
  return `${eventStart}${data.replace(/\r\n|\n|\r/g, `\n${eventStart}`)}${eventEnd}`;
}

/** A line that clients ignore, which keeps proxies and time-outs from ending an idle stream. */
export function encodeComment(text: string): string {
  return `: ${text.replace(/[\r\n]+/g, " ")}${eventEnd}`;
}
