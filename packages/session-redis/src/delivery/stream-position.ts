/** When an entry of a stream was added, as its position tells: epoch milliseconds. */
export function timeOf(position: string): number {
  return parts(position)[0];
}

/** Orders what has a position in one of several streams by the time at which it was added. */
export function byPosition(one: { readonly position: string }, other: { readonly position: string }): number {
  const [ms, sequence] = parts(one.position);
  const [otherMs, otherSequence] = parts(other.position);
  return ms - otherMs || sequence - otherSequence;
}

function parts(position: string): [ms: number, sequence: number] {
  const [ms, sequence] = position.split('-');
  return [Number(ms), Number(sequence)];
}
