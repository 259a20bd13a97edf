import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { registerChecks, sessionIdResolverContract } from '@nest-session/testing/contracts';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  type SessionIdResolver,
} from '../../src/index.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';

LeakGuard.install();

type Headers = Record<string, string>;
type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The way in which one kind of client sends a token back. */
interface Client {
  present(...responses: ResponseHeaders[]): Headers;
  forge(text: string): Headers;
}

function browser(name = 'SESSION'): Client {
  return {
    present(...responses): Headers {
      const agent = new HttpAgent('http://127.0.0.1');
      for (const setCookie of responses.flatMap((response) => response['set-cookie'] ?? [])) agent.setCookie(setCookie);
      const cookies = Object.entries(agent.cookies).map((cookie) => cookie.join('='));
      return cookies.length > 0 ? { cookie: cookies.join('; ') } : {};
    },
    forge: (text) => ({ cookie: `${name}=${text}` }),
  };
}

function program(name: string): Client {
  return {
    present(...responses): Headers {
      const token = responses.map((response) => response[name.toLowerCase()]).findLast((sent) => sent !== undefined);
      return typeof token === 'string' && token !== '' ? { [name]: token } : {};
    },
    forge: (text) => ({ [name]: text }),
  };
}

describe.each<[string, () => SessionIdResolver, Client]>([
  ['CookieSessionIdResolver', () => new CookieSessionIdResolver(), browser()],
  ['with a name of its own', () => new CookieSessionIdResolver({ name: 'sid', maxAge: '30d' }), browser('sid')],
  ['with signing keys', () => new CookieSessionIdResolver({ signingKeys: SIGNING_KEYS }), browser()],
  ['HeaderSessionIdResolver, X-Auth-Token', () => HeaderSessionIdResolver.xAuthToken(), program('X-Auth-Token')],
  [
    'HeaderSessionIdResolver, Authentication-Info',
    () => HeaderSessionIdResolver.authenticationInfo(),
    program('Authentication-Info'),
  ],
  ['HeaderSessionIdResolver, X-My-Token', () => new HeaderSessionIdResolver('X-My-Token'), program('X-My-Token')],
  [
    'CompositeSessionIdResolver, header first',
    () => new CompositeSessionIdResolver(HeaderSessionIdResolver.xAuthToken(), new CookieSessionIdResolver()),
    program('X-Auth-Token'),
  ],
  [
    'CompositeSessionIdResolver, cookie first',
    () => new CompositeSessionIdResolver(new CookieSessionIdResolver(), HeaderSessionIdResolver.xAuthToken()),
    browser(),
  ],
])('%s', (_, create, { present, forge }) => {
  registerChecks(sessionIdResolverContract({ create, present, forge }), { describe, it });
});
