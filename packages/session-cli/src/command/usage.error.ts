import { counted } from './counted.js';

/** Thrown when a command has to be called in another way. Its message is printed as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Words that a person mistypes. A longer one, or one with other characters, may be a password in the wrong place. */
const WORD = /^[a-z-]{1,12}$/;

/** What a problem shows of an argument: nothing of one that may be, or hold, a password. */
export function shownArgument(text: string, harmless = WORD): string {
  return harmless.test(text)
    ? JSON.stringify(text)
    : `(${counted(text.length, 'character')}, not shown: it may be a password)`;
}
