import type { IncomingMessage, ServerResponse } from 'node:http';
import { HeaderSessionIdResolver, type SessionToken } from '@nest-session/core';
import { generateSessionKey } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { sessionIdResolverContract } from '@nest-session/testing/contracts';

LeakGuard.install();

const name = 'X-Auth-Token';

async function failuresOf(create: () => HeaderSessionIdResolver): Promise<string[]> {
  const checks = sessionIdResolverContract({
    create,
    present(...answers) {
      const token = answers.map((answer) => answer['x-auth-token']).findLast((sent) => sent !== undefined);
      return token ? { [name]: String(token) } : ({} as Record<string, string>);
    },
    forge: (text) => ({ [name]: text }),
  });
  const failures: string[] = [];
  for (const each of checks) await each.check().catch(() => failures.push(each.name));
  return failures;
}

/** A correct resolver; the subclasses each make one mistake. */
class Correct extends HeaderSessionIdResolver {
  constructor() {
    super(name);
  }
}

class NeverFinds extends Correct {
  override resolve(): SessionToken[] {
    return [];
  }
}

class FindsWhatNobodyPresents extends Correct {
  override resolve(): SessionToken[] {
    return [generateSessionKey().token];
  }
}

class Fails extends Correct {
  override resolve(request: IncomingMessage): SessionToken[] {
    const text = request.headers['x-auth-token'];
    if (typeof text === 'string' && text.includes('%')) decodeURIComponent(`${text}%`);
    return super.resolve(request);
  }
}

class Adopts extends Correct {
  override resolve(request: IncomingMessage): SessionToken[] {
    const text = request.headers['x-auth-token'];
    const found = super.resolve(request);
    return text === undefined || found.length > 0 ? found : [generateSessionKey().token];
  }
}

class NeverForgets extends Correct {
  override expire(): void {}
}

class SendsTwice extends Correct {
  override send(request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    super.send(request, response, token);
    response.setHeader('X-Debug', `session=${token.reveal()}`);
  }
}

class ReplacesCookies extends Correct {
  override send(request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    super.send(request, response, token);
    response.setHeader('Set-Cookie', 'seen=1');
  }
}

class NamesAnotherHeader extends Correct {
  override readonly headers = ['Cookie'] as const;
  readonly #inner = new Correct();

  override resolve(request: IncomingMessage): SessionToken[] {
    return this.#inner.resolve(request);
  }

  override send(request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    this.#inner.send(request, response, token);
  }

  override expire(request: IncomingMessage, response: ServerResponse): void {
    this.#inner.expire(request, response);
  }
}

describe('sessionIdResolverContract', () => {
  it('passes for a correct resolver', async () => {
    expect(await failuresOf(() => new Correct())).toEqual([]);
  });

  it.each([
    ['never finds a token', () => new NeverFinds(), 'finds the token that it has sent'],
    ['finds a token that no request presents', () => new FindsWhatNobodyPresents(), 'finds no token in a request that'],
    ['throws for text that clients can send', () => new Fails(), 'finds no token in malformed text, and does not fail'],
    ['accepts text that cannot be a token', () => new Adopts(), 'finds no token in malformed text, and does not fail'],
    ['expires no token', () => new NeverForgets(), 'finds no token after it has expired the token of the client'],
    [
      'sends the token in two places',
      () => new SendsTwice(),
      'sends a token in one place, and changes nothing else of the response',
    ],
    [
      'replaces a cookie of the application',
      () => new ReplacesCookies(),
      'sends a token in one place, and changes nothing else of the response',
    ],
    ['names a header that it does not read', () => new NamesAnotherHeader(), 'names the request headers'],
  ])('fails for a resolver that %s', async (_, create, failure) => {
    expect(await failuresOf(create)).toContainEqual(expect.stringContaining(failure));
  });
});
