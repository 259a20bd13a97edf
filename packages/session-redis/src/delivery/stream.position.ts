/** When an entry of a stream was added, as its position tells: epoch milliseconds. */
export function timeOf(position: string): number {
  return Number(position.split('-')[0]);
}

/** Whether a position of a stream comes before another one. */
export function isBefore(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number);
  return ms < otherMs || (ms === otherMs && sequence < otherSequence);
}
