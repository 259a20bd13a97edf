/** When an entry of a stream was added, as its position tells: epoch milliseconds. */
export function timeOf(position: string): number {
  return Number(position.split('-')[0]);
}
