/** An attribute as the application sees it. */
export interface AttributeEntry {
  readonly name: string;
  readonly value: unknown;
  /** Whether the application set it since the last save; otherwise it was only read. */
  assigned: boolean;
  /**
   * The text when the attribute was set, read or last saved, to notice an object that is changed in place; null for a
   * removed attribute. Undefined for a value that was only read and cannot change in place, or cannot be encoded.
   */
  text: string | null | undefined;
  /** Whether `text` is the stored text, which another language may have formatted differently. */
  isRaw: boolean;
  /** Whether a save was given a change in place, and has had no reply: the store may have it. */
  isSent?: boolean;
}
