/** A line that a package can write. */
export interface KnownLine {
  /** `...` stands for what differs. */
  readonly line: string;
  readonly level: string;
  readonly means: string;
  readonly do: string;
  /** The title of a page of the documentation. */
  readonly see?: string;
}
