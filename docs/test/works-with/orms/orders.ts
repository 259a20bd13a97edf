/** What each ORM does here, in SQLite. */
export abstract class Orders {
  /** Adds a row. Resolves to its id. */
  abstract add(item: string): Promise<number>;
  /** Resolves to the item of the row. */
  abstract itemOf(id: number): Promise<string | undefined>;
}
