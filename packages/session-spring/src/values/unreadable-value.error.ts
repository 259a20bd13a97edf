/** Bytes that are no value, that end too early, or that are more than the limits allow. Stays in this folder. */
export class UnreadableValueError extends Error {
  override readonly name = 'UnreadableValueError';
}
