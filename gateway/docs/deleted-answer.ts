import Type from "typebox";

/** What every DELETE answers. */
export const deletedAnswer = { deleted: true } as const;

/** The schema of it. */
export const deletedAnswerSchema = Type.Object({ deleted: Type.Literal(true) });
