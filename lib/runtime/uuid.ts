const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text is written as a UUID (RFC 9562, section 4), of any version and in either case. */
export function isUuid(text: string): boolean {
  return pattern.test(text);
}
