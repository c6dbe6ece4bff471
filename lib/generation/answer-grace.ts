/**
 * How long the gateway waits past the deadline of a generation for the service to say what became of it, milliseconds.
 * The service ends so much earlier than a process that calls it gives up.
 */
export const answerGraceMs = 1000;
