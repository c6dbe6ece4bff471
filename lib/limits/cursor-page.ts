/** Which part of a list may be asked for that is read by cursor. */
export const cursorPage = { limit: { maximum: 100, default: 50 } } as const;
