/** `AggregateError`, with a type that also applications can compile whose `lib` is older than ES2021. */
export const ErrorOfSeveral: new (
  errors: Iterable<unknown>,
  message?: string,
) => Error & {
  /** What went wrong, one error after the other. */
  readonly errors: readonly unknown[];
} = AggregateError;
