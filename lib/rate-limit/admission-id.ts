import { createContextKey, type Interceptor } from "@connectrpc/connect";

/** The id under which the request that a call is part of was admitted; undefined when it was not. */
export const admissionIdKey = createContextKey<string | undefined>(undefined, {
  description: "admission id",
});

/** Carries it from process to process; from anybody else it means nothing. */
export const admissionIdHeader = "x-admission-id";

const idPattern = /^[\w.-]{1,64}$/;

/** Client side: names the admission of the request that a call is part of. */
export const forwardAdmissionId: Interceptor = (next) => (request) => {
  const id = request.contextValues.get(admissionIdKey);
  if (id !== undefined) request.header.set(admissionIdHeader, id);
  return next(request);
};

/** The id that a call names; undefined when it names none, or none of ours. */
export function admissionIdOf(header: Headers): string | undefined {
  const id = header.get(admissionIdHeader);
  return id !== null && idPattern.test(id) ? id : undefined;
}
