import { ApolloDriver } from '@nestjs/apollo';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver } from '@nestjs/mercurius';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Authenticated, DeviceBound, Session } from '../../src/index.js';
import { closeApps } from '../support/session.app.js';
import { IN_MEMORY } from './device.app.js';
import { DeviceBrowser } from './device.browser.js';

LeakGuard.install();
afterEach(closeApps);

@Resolver()
class BankResolver {
  @DeviceBound(false)
  @Query(() => String)
  landing(@Session() { principalName = 'nobody' }: Session) {
    return principalName;
  }

  @Authenticated()
  @Query(() => String)
  iban(@Session() { principalName }: Session) {
    return `of ${principalName}`;
  }
}

describe.each([
  ['express', ApolloDriver],
  ['fastify', MercuriusDriver],
] as const)('on %s, the resolvers of one request', (platform, driver) => {
  it('need a proof for the session, whatever one of them says', async () => {
    const imports = [GraphQLModule.forRoot({ driver, autoSchemaFile: true })];
    const { browser, origin } = await IN_MEMORY.signedIn(undefined, { platform, imports, providers: [BankResolver] });
    const ask = async (asking: DeviceBrowser, query: string) =>
      JSON.parse((await asking.get(`/graphql?query=${encodeURIComponent(query)}`, APOLLO)).body) as {
        data: Record<string, string> | null;
      };
    const thief = browser.thief(origin, false);
    thief.jar.delete('SESSION-device');
    expect((await ask(browser, '{ landing iban }')).data).toEqual({ landing: 'ann', iban: 'of ann' });
    expect((await ask(thief, '{ landing }')).data).toEqual({ landing: 'nobody' });
    for (const query of ['{ iban }', '{ landing iban }', '{ iban landing }'])
      expect((await ask(thief, query)).data).toBeNull();
  });
});

/** Without it, Apollo takes a GET request for one of another site. */
const APOLLO = { 'apollo-require-preflight': 'true' };
