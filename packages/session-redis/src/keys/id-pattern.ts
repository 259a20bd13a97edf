/** The source of a regular expression for an id in the name of a key: longer than any word that stands there. */
export const ID_PATTERN = String.raw`[\w-]{22,}`;
