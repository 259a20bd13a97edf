/** Has this process do nothing at all for so many milliseconds, as when others have all of the machine. */
export function standStill(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
