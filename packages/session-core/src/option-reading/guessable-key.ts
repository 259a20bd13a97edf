const FEWEST_DIFFERENT = 10;
const PLACEHOLDER =
  /secret|change.?me|keyboard.?cat|passw|placeholder|example|your.{0,12}key|test.?key|lorem|0123456789|abcdefgh/i;

/**
 * Whether a secret was typed or counted instead of drawn: a text that stands in examples, few different characters, a
 * part that repeats, or characters with the same distance, such as 0, 1, 2. A key of bytes is a text of Latin-1.
 */
export function isGuessableKey(key: string): boolean {
  const codes = Array.from(key, (character) => character.codePointAt(0)!);
  const steps = codes.slice(1).map((code, index) => code - codes[index]!);
  return PLACEHOLDER.test(key) || areFew(codes) || areFew(steps) || repeatsItself(key);
}

function areFew(numbers: readonly number[]): boolean {
  return new Set(numbers).size < FEWEST_DIFFERENT;
}

function repeatsItself(key: string): boolean {
  const longest = Math.floor(key.length / 2);
  return Array.from({ length: longest }, (_, index) => index + 1).some((size) => key.startsWith(key.slice(size)));
}
