import type { OptionReader, ResolvedCookieOptions } from '@nest-session/core/internal';

/** What an option amounts to here, or, as `problem`, why it cannot be kept and what to do instead. */
type Answer = string | { readonly problem: string };

/** By option of express-session, the answer to a value. */
const ANSWERS: Readonly<Record<string, (value: unknown, cookie: ResolvedCookieOptions) => Answer>> = {
  resave: () => 'a request that changes nothing writes nothing; it renews the session once in `touchInterval`',
  rolling: (value, { maxAge }) => {
    if (value === true || maxAge === undefined)
      return 'a cookie with a lifetime is sent again whenever the session is renewed';
    return {
      problem:
        'cannot be false, because a cookie with a lifetime is sent again whenever the session is renewed: remove it, and ' +
        'set `absoluteTimeout` in SessionModule.forRoot() if sessions in use must end',
    };
  },
  proxy: (value) =>
    value === true
      ? {
          problem:
            'is a setting of the platform: remove it, and call app.set("trust proxy", 1), or set `trustProxy` of the FastifyAdapter',
        }
      : 'the platform decides which proxies it trusts',
  genid: () => ({ problem: 'is the option `sessionTokenGenerator` of SessionModule.forRoot(): move it there' }),
  store: () => ({ problem: 'is not needed: RedisSessionModule.forRoot() keeps the sessions, remove it' }),
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
