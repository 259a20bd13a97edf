/** When the entry at a position was added: epoch ms. */
export function timeOf(position: string): number {
  return parts(position)[0];
}

/** Orders entries of several streams by the time when they were added. */
export function byPosition(one: { readonly position: string }, other: { readonly position: string }): number {
  const [ms, sequence] = parts(one.position);
  const [otherMs, otherSequence] = parts(other.position);
  return ms - otherMs || sequence - otherSequence;
}

function parts(position: string): [ms: number, sequence: number] {
  const [ms, sequence] = position.split('-');
  return [Number(ms), Number(sequence)];
}
