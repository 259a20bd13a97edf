/** `AggregateError`, with a type that also applications can compile whose `lib` is older than ES2021. */
export const ErrorOfSeveral: new (
  errors: Iterable<unknown>,
  message?: string,
) => Error & { readonly errors: readonly unknown[] } = AggregateError;
