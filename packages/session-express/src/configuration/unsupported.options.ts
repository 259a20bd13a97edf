import type { OptionReader, ResolvedCookieOptions } from '@nest-session/core/internal';

/** What an option means here. A `problem` says why the option cannot be kept, and what to do instead. */
type Answer = string | { readonly problem: string };

/** The answer to a value of each option of express-session. */
const ANSWERS: Readonly<Record<string, (value: unknown, cookie: ResolvedCookieOptions) => Answer>> = {
  resave: () => 'a request without changes writes nothing, except to renew the session once per `touchInterval`',
  rolling: (value, { maxAge }) => {
    if (value === true || maxAge === undefined)
      return 'a cookie with a lifetime is sent again whenever the session is renewed';
    return {
      problem:
        'cannot be false, because a cookie with a lifetime is sent again whenever the session is renewed: remove it. ' +
        'To end sessions that are still in use, set `absoluteTimeout` in SessionModule.forRoot()',
    };
  },
  proxy: () => 'the platform decides which proxies it trusts',
  genid: () => ({ problem: 'has the counterpart `sessionTokenGenerator` of SessionModule.forRoot(): move it there' }),
  store: () => ({ problem: 'is not needed, because RedisSessionModule.forRoot() stores the sessions: remove it' }),
};

/** Reads the options of express-session that have no counterpart of their own. Returns the answers for the log. */
export function answerOptions(reader: OptionReader, options: object, cookie: ResolvedCookieOptions): string[] {
  const answers: string[] = [];
  for (const [name, answer] of Object.entries(ANSWERS)) {
    const value = reader.value(name, isAnything, 'anything');
    if (value === undefined || !(name in options)) continue;
    const answered = answer(value, cookie);
    if (typeof answered === 'string') answers.push(`\`${name}\`: ${answered}`);
    else reader.problem(`Option \`${name}\` ${answered.problem}.`);
  }
  return answers;
}

function isAnything(_value: unknown): _value is unknown {
  return true;
}
