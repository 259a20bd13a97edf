/** What a version of the library knows of the formats of the data in Redis. */
export interface StoreFormat {
  /** The format that it writes. */
  readonly version: number;
  /** The oldest format that it understands. */
  readonly oldest: number;
  /** The format that others have to know to read what it writes. */
  readonly minReader: number;
  /** The format that others have to know to write beside it. */
  readonly minWriter: number;
}

/** What this version knows. A change that old instances can ignore raises `version` alone. */
export const FORMAT: StoreFormat = { version: 3, oldest: 3, minReader: 3, minWriter: 3 };

/** The fields of `meta` that say it. */
export const FORMAT_FIELDS = ['version', 'minReader', 'minWriter'] as const;

type Recorded = readonly (string | null | undefined)[];

/** The highest numbers of what is recorded and what a version writes: those to record. */
export function raised([version, minReader, minWriter]: Recorded, own: StoreFormat) {
  return {
    version: Math.max(Number(version ?? 0), own.version),
    minReader: Math.max(Number(minReader ?? version ?? 0), own.minReader),
    minWriter: Math.max(Number(minWriter ?? version ?? 0), own.minWriter),
  };
}

/**
 * Why a version cannot read, or write, data with these `FORMAT_FIELDS`; undefined when it can. Without the last two,
 * the first one counts for them.
 */
export function formatProblem(
  [version, minReader, minWriter]: Recorded,
  own: StoreFormat,
  { writes }: { readonly writes: boolean },
): string | undefined {
  const needed = (writes ? minWriter : minReader) ?? version;
  if (!(Number(version) >= own.oldest)) {
    return (
      `have format ${String(version)}, but this version of the library understands format ${own.oldest} and later. Use ` +
      'another namespace, or the version that wrote them.'
    );
  }
  if (Number(needed) <= own.version) return undefined;
  return (
    `have format ${String(version)}, and only versions of the library that know format ${String(needed)} may ` +
    `${writes ? 'write' : 'read'} it: this one knows format ${own.version}. Use a newer version, or another namespace.`
  );
}
