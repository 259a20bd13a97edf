/** A position in a stream, which begins with a time: epoch ms. */
export type Position = readonly [ms: number, sequence: number];

/** When the entry at a position was added: epoch ms. */
export function timeOf(position: string): number {
  return positionOf(position)[0];
}

/** Orders entries of several streams by the time when they were added. */
export function byPosition(one: { readonly position: string }, other: { readonly position: string }): number {
  const [ms, sequence] = positionOf(one.position);
  const [otherMs, otherSequence] = positionOf(other.position);
  return ms - otherMs || sequence - otherSequence;
}

export function positionOf(text: string): Position {
  const [ms, sequence] = text.split('-');
  return [Number(ms), Number(sequence)];
}

export function positionText([ms, sequence]: Position): string {
  return `${ms}-${sequence}`;
}

/** Whether a position comes after another one. */
export function isLater([ms, sequence]: Position, [otherMs, otherSequence]: Position): boolean {
  return ms > otherMs || (ms === otherMs && sequence > otherSequence);
}
