import { counted } from './shown.js';

export const PROGRAM = 'nest-session';
export const MORE = `See ${PROGRAM} --help`;

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

export function wholeNumber(option: string, given: string, { atLeast = 0, atMost = 1e9 } = {}): number {
  if (!/^\d{1,15}$/.test(given))
    throw new UsageError(`--${option} must be a whole number, but is ${JSON.stringify(given)}. ${MORE}`);
  if (Number(given) >= atLeast && Number(given) <= atMost) return Number(given);
  throw new UsageError(`--${option} must be from ${atLeast} to ${atMost}, but is ${given}. ${MORE}`);
}
