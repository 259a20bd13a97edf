/** Whoever runs a command has to call it in another way. Its message is printed as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
