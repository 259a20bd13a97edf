/** The place in the code that assigned a property, as in a stack trace. `setter` is the function that was called. */
export function assignedAt(setter: (this: never, value: unknown) => void): string {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, setter);
  const places = (trace.stack ?? '').split('\n').slice(1);
  // On Fastify, a setter of ours stands between.
  return (
    places
      .find((place) => !place.includes('bind-to-fastify'))
      ?.trim()
      .replace(/^at /, '') ?? 'an unknown place'
  );
}
