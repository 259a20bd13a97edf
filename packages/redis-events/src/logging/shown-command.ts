const DEFAULT_NAMESPACE = 'nest:session';
const PLAIN = /^[\w:.,/@%+=-]+$/;

/** A call of the command `nest-session` for a namespace, to be pasted into a POSIX shell. */
export function shownCommand(namespace: string, ...words: readonly string[]): string {
  const ofNamespace = namespace === DEFAULT_NAMESPACE ? [] : [`--namespace=${namespace}`];
  return ['nest-session', ...words, ...ofNamespace].map(quoted).join(' ');
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
