import { isAnswer } from '@nest-session/redis-events/internal';

/**
 * The word that names the kind of a failure: a code of Node.js, such as `ECONNREFUSED`, or how an error of Redis
 * begins, such as `WRONGPASS`. Everything else in an error may be an address or a name.
 */
export function failureWord(error: unknown): string | undefined {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof code === 'string' ? code : isAnswer(error) ? String(message) : '';
  return /^[A-Z][A-Z0-9_]+(?= |$)/.exec(text)?.[0];
}
