/** How much of a value is read. The value of an attribute is foreign data, and must not cost more than its length. */
export interface ReadingLimits {
  /** The length of what is stored. */
  readonly bytes: number;
  /** Objects and lists in each other. */
  readonly depth: number;
  /** Objects, fields, elements and class descriptions, each as often as it is read. */
  readonly steps: number;
}

export const READING_LIMITS: ReadingLimits = { bytes: 8 * 1024 * 1024, depth: 200, steps: 1_000_000 };
