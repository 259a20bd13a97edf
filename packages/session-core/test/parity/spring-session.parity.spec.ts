import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Injectable } from '@nestjs/common';
import { LeakGuard, ManualClock } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { GatedRepository } from '../http/gated.repository.js';
import { closeApps, type SessionApp, startApp } from '../http/session.app.js';

// The cases of Spring Session's own tests of its web layer, by their names, and what stands for each of them here.

LeakGuard.install();

const HTTP = '../http/session-http.spec.ts';
const TRACKED = '../session/tracked-session.spec.ts';
const COOKIE = '../http/cookie-session-id.resolver.spec.ts';
const POLICY = '../options/cookie-policy.spec.ts';
const SEVERAL = '../http/several-cookies.spec.ts';
const HEADER = '../http/header-session-id.resolver.spec.ts';
const COMPOSITE = '../http/composite-session-id.resolver.spec.ts';
const MODULE = '../http/session.module.spec.ts';
const HOLD = '../http/response-hold.spec.ts';
const INTERCEPTOR = '../http/session.interceptor.spec.ts';
const HERE = '../parity/spring-session.parity.spec.ts';

/** Spring's names, the spec, and the test in it. */
type Counterpart = readonly [names: string, spec: string, title: string];
/** Spring's names, and why there is no such case here. */
type LeftOut = readonly [names: string, reason: string];

const IS_SET = 'SESSION=token; Path=/; HttpOnly; SameSite=Lax';
const WITH_OPTIONS = 'with %j sets %s, and expires the same';
const OVER_WRITES = 'gives undefined to reads, throws at writes, and deletes at the save';

const LISTS: Readonly<Record<string, { here: readonly Counterpart[]; leftOut: readonly LeftOut[] }>> = {
  SessionRepositoryFilterTests: {
    here: [
      ['doFilterCreateDate doFilterCreateSetsLastAccessedTime doFilterLastAccessedTime', HERE, 'has the times of its'],
      ['doFilterId doFilterIsNewTrue doFilterIsNewFalse', HERE, 'is new in the request that starts it'],
      ['doFilterIdChanges', HERE, 'is another one for who brings no cookie'],
      [
        'doFilterMaxInactiveIntervalDefault doFilterMaxInactiveIntervalOverride',
        HERE,
        'keeps the interval it was given',
      ],
      ['doFilterAttribute doFilterGetAttr', HERE, 'keeps, lists and loses attributes across requests'],
      ['doFilterSetsCookieIfChanged', TRACKED, 'draws another id when its own is taken'],
      ['doFilterGetSessionNewWhenResponseCommittedThenException', HTTP, 'cannot begin after the head has left'],
      ['doFilterGetSessionNew doFilterGetSessionTrueNew', HTTP, 'is set with the session, and not again'],
      ['doFilterGetSessionFalseNew', HTTP, 'is neither set nor named when nobody asks for the session'],
      [
        'doFilterIsRequestedValidSessionTrue doFilterGetSessionGetSessionFalse',
        HTTP,
        'gives its attributes and its id',
      ],
      ['doFilterChangeSessionId', HTTP, 'changes at login and opens nothing before'],
      ['doFilterIsRequestedValidSessionFalseInvalidId doFilterGetSessionInvalidSessionId', HERE, 'is a new one for an'],
      ['doFilterGetSessionTrueInvalidSessionId', HERE, 'is a new one for an unknown token'],
      ['doFilterIsRequestedValidSessionFalse', HTTP, 'is not asked for a request with %s'],
      ['doFilterGetSessionFalseInvalidSessionId', HTTP, 'is left alone by an unknown session'],
      ['doFilterGetSessionGetSessionOnError', HTTP, 'of what an exception filter has set is done'],
      ['doFilterCookieSecuritySettings', COOKIE, 'Secure auto: %s'],
      ['doFilterInvalidateAttributeIllegalState doFilterInvalidateAttributeNamesIllegalState', TRACKED, OVER_WRITES],
      [
        'doFilterInvalidateSetAttributeIllegalState doFilterInvalidateRemoveAttributeIllegalState',
        TRACKED,
        OVER_WRITES,
      ],
      [
        'doFilterInvalidateInvalidateIllegalState doFilterInvalidateId',
        HERE,
        'may be ended twice, and still has its id',
      ],
      ['doFilterInvalidateCreationTimeIllegalState doFilterInvalidateNewIllegalState', HERE, 'may be ended twice'],
      ['doFilterInvalidateLastAccessedTimeIllegalState', HERE, 'may be ended twice, and still has its id'],
      ['doFilterInvalidateMaxInteractiveInterval', HERE, 'may be ended twice, and still has its id and its times'],
      [
        'doFilterSendError doFilterSendErrorAndMessage doFilterSendRedirect',
        HTTP,
        'is done before the head leaves: %s',
      ],
      ['doFilterFlushBuffer doFilterOutputFlush doFilterOutputClose', HOLD, 'lets nothing leave before the save: %s'],
      ['doFilterWriterFlush doFilterWriterClose', HOLD, 'lets nothing leave before the save: %s'],
      ['doFilterAdapterGetRequestedSessionId', SEVERAL, 'open the session of the one that is alive, be it %s'],
      ['doFilterAdapterGetRequestedSessionIdForInvalidSession', TRACKED, 'is created under its own id with what the'],
      ['doFilterAdapterOnNewSession', HTTP, 'is set with the session, and not again'],
      ['doFilterAdapterOnInvalidate', HTTP, 'is expired by the request that ends the session'],
      ['doFilterRequestSessionNoRequestSessionDoesNotInvalidate', HTTP, 'is neither set nor named when nobody asks'],
      [
        'doFilterLazySessionCreation doFilterRequestSessionNoRequestSessionNoSessionRepositoryInteractions',
        HTTP,
        'is not asked for a request with %s',
      ],
      ['doFilterSessionRetrievalIsCached', HTTP, 'is asked once to read, twice to write, twice to log in'],
      ['order doesNotImplementOrdered', HTTP, 'is there for services, whatever was parsed before'],
      ['setHttpSessionIdResolverNull', COMPOSITE, 'the option sessionIdResolver'],
      ['doFilterIncludeCommitSessionOnce', INTERCEPTOR, 'saves once, the last value of an Observable included'],
    ],
    leftOut: [
      ['doFilterServletContext doFilterInvalidateServletContext', 'there is no servlet context'],
      [
        'doFilterInvalidateAndGetSession',
        'a request has one session: after invalidate() the next request has a new one',
      ],
      ['doFilterChangeSessionIdNoSession', 'there is always a session, and a new one may draw another id'],
      ['doFilterInclude', 'there are no includes'],
      ['doFilterLazySessionUpdates', 'guards and handlers read the session synchronously, so it is loaded before them'],
      [
        'bindingListenerBindListener bindingListenerBindListenerThenUnbind bindingListenerBindSameListenerTwice ' +
          'bindingListenerBindListenerOverwrite bindingListenerBindThrowsException ' +
          'bindingListenerBindListenerThenUnbindThrowsException',
        'values are data and hear of nothing; @OnSessionEvent tells of sessions',
      ],
    ],
  },
  DefaultCookieSerializerTests: {
    here: [
      ['readCookieValuesNull', COOKIE, 'reads no cookie where there is none'],
      ['readCookieValuesSingle readCookieValuesSingleAndInvalidName readCookieValuesMulti', COOKIE, 'reads %j'],
      ['readCookieValuesSingleBase64 writeCookieBase64', COOKIE, 'reads what it has written as base64'],
      ['readCookieSerializerUseBase64EncodingTrueValuesNotBase64', COOKIE, "['SESSION=&^%$*', []]"],
      [
        'readCookieValuesNullCookieValue readCookieValuesNullCookieValueAndNotNullCookie',
        COOKIE,
        'SESSION=; SESSION=short;',
      ],
      ['readCookieValuesMultiCustomSessionCookieName writeCookieCookieNameCustom', MODULE, "cookie: { name: 'sid' }"],
      [
        'writeCookie writeCookieCookieNameDefault writeCookieDomainNameDefault writeCookieHttpOnlyDefault',
        COOKIE,
        IS_SET,
      ],
      ['writeCookieCookiePathDefaultEmptyContextPathUsed writeCookieDefaultSameSiteLax', COOKIE, IS_SET],
      ['writeCookieDefaultInsecureRequest writeCookieCookieMaxAgeDefault', COOKIE, IS_SET],
      ['writeCookieHttpOnlySetTrue writeCookieHttpOnlySetFalse writeCookieDomainNameCustom', COOKIE, WITH_OPTIONS],
      ['writeCookieCookiePathExplicitCookiePath writeCookieSetSameSiteLax', COOKIE, WITH_OPTIONS],
      ['writeCookieSetSameSiteStrict writeCookieSetSameSiteNull', COOKIE, WITH_OPTIONS],
      ['writeCookieWhenPartitionedTrueThenSetPartitionedAttribute', COOKIE, WITH_OPTIONS],
      ['setDomainNameAndDomainNamePatternThrows setDomainNamePatternAndDomainNameThrows', POLICY, 'exclude each other'],
      ['setCookieNameNullThrows', POLICY, '[{ name: 7 }, '],
      ['writeCookieDomainNamePattern', COOKIE, 'makes of the host %j the domain %j'],
      ['writeCookieCookieMaxAgeExplicit writeCookieCookieMaxAgeExplicitEmptyCookie', COOKIE, 'outlives the browser'],
      ['writeCookieCookieMaxAgeExplicitCookieValue', COOKIE, 'replace those configured, to %s'],
      ['writeCookieSecureSecureRequest writeCookieSecureInsecureRequest', COOKIE, 'secure: true'],
      ['writeCookieInsecureSecureRequest writeCookieInsecureInsecureRequest', HERE, 'has no Secure where that is off'],
    ],
    leftOut: [
      [
        'readCookieValuesNullCookieValueAndJvmRoute writeCookieJvmRoute readCookieJvmRoute readCookieJvmRouteRouteMissing ' +
          'readCookieJvmRouteOnlyRoute',
        'every instance has every session, so no load balancer needs a route in the cookie',
      ],
      [
        'writeCookieCookiePathDefaultContextPathUsed writeCookieCookiePathExplicitNullCookiePathContextPathUsed',
        'there is no context path',
      ],
      [
        'writeCookieRememberMeCookieMaxAgeDefault writeCookieRememberMeCookieMaxAgeOverride',
        'browsers keep no cookie for 68 years: cookie.rememberMe says for how long, 400 days at most',
      ],
    ],
  },
  CookieHttpSessionIdResolverTests: {
    here: [
      ['getRequestedSessionIdNull', COOKIE, 'reads no cookie where there is none'],
      ['getRequestedSessionIdNotNull', COOKIE, 'reads %j'],
      ['getRequestedSessionIdNotNullCustomCookieName onNewSessionCustomCookieName', COOKIE, WITH_OPTIONS],
      ['onNewSession onNewSessionTwiceSameId', HTTP, 'is set with the session, and not again'],
      ['onNewSessionTwiceNewId', HTTP, 'changes at login and opens nothing before'],
      ['onNewSessionCookiePath onDeleteSessionCookiePath onDeleteSessionCustomCookieName', COOKIE, WITH_OPTIONS],
      ['onDeleteSession', HTTP, 'is expired by the request that ends the session, with the attributes it was set with'],
    ],
    leftOut: [['createSessionCookieValue', 'a helper of tests that are gone']],
  },
  HeaderHttpSessionIdResolverTests: {
    here: [
      ['createResolverWithXAuthTokenHeader createResolverWithAuthenticationInfoHeader', HEADER, 'reads and writes the'],
      ['createResolverWithCustomHeaderName', HEADER, 'reads and writes the header of its name only'],
      ['createResolverWithNullHeaderName', HEADER, 'refuses the name %j'],
      [
        'getRequestedSessionIdNull getRequestedSessionIdNotNull',
        HEADER,
        'reads and writes the header of its name only',
      ],
      ['onNewSession onDeleteSession', HEADER, 'carries a session through its life, without any cookie'],
      ['onNewSessionMulti onDeleteSessionMulti', HEADER, 'reads and writes the header of its name only'],
    ],
    leftOut: [],
  },
  CompositeHttpSessionIdResolverTests: {
    here: [
      ['getRequestedSessionIdNull', COMPOSITE, 'finds in %j %j'],
      ['resolveSessionIdsByXAuthToken resolveSessionIdsByAuthenticationInfo', COMPOSITE, 'reads what each of its'],
    ],
    leftOut: [
      [
        'onNewSession onDeleteSession',
        'one of them answers, never several: a token in a header and a cookie by accident',
      ],
    ],
  },
};

describe.each(Object.entries(LISTS))('%s', (_, { here, leftOut }) => {
  it.each(here)('%s: %s, "%s"', (_names, spec, title) => {
    expect(readFileSync(fileURLToPath(new URL(spec, import.meta.url)), 'utf8')).toContain(title);
  });

  it('names each case once', () => {
    const names = [...here, ...leftOut].flatMap(([each]) => each.split(' '));
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });
});

/** What the next request does with its session, and what it answers. */
@Injectable()
class Step {
  run: (session: Session) => unknown = () => ({});
}

@Controller()
class StepController {
  constructor(private readonly step: Step) {}

  @Get()
  answer(@Session() session: Session) {
    return this.step.run(session);
  }
}

describe.each(['express', 'fastify'] as const)('the session of a request, on %s,', (platform) => {
  const clock = new ManualClock();
  let app: SessionApp;
  beforeEach(async () => {
    const session = { touchInterval: 0 } as const;
    const base = { platform, session, controllers: [StepController], providers: [Step] };
    app = await startApp({ ...base, store: new GatedRepository({ clock }) });
  });
  afterEach(closeApps);

  /** Sends a request whose handler is `run`; resolves to what it has returned. */
  async function during<T extends object>(agent: ReturnType<SessionApp['agent']>, run: (session: Session) => T) {
    app.app.get(Step).run = run;
    const answer = await agent.get('/');
    return { ...answer, value: answer.json<T>() };
  }

  it('has the times of its creation and of its last access', async () => {
    const agent = app.agent();
    const times = ({ creationTime, lastAccessedTime }: Session) => ({ creationTime, lastAccessedTime });
    const created = clock.now();
    await during(agent, (session) => ({ done: session.setAttribute('a', 1) }));
    clock.advance(1000);
    expect((await during(agent, times)).value).toEqual({ creationTime: created, lastAccessedTime: created });
    clock.advance(1000);
    expect((await during(agent, times)).value).toEqual({ creationTime: created, lastAccessedTime: created + 1000 });
  });

  it('is new in the request that starts it, and has the same id from then on', async () => {
    const agent = app.agent();
    const first = await during(agent, (session) => {
      session.setAttribute('a', 1);
      return { id: session.id, isNew: [session.isNew, session.isNew] };
    });
    expect(first.value.isNew).toEqual([true, true]);
    const second = await during(agent, ({ id, isNew }) => ({ id, isNew }));
    expect(second.value).toEqual({ id: first.value.id, isNew: false });
    expect(second.setCookies).toEqual([]);
  });

  it('is another one for who brings no cookie', async () => {
    const start = (session: Session) => {
      session.setAttribute('a', 1);
      return { id: session.id };
    };
    const [first, second] = [await during(app.agent(), start), await during(app.agent(), start)];
    expect(first.value.id).not.toBe(second.value.id);
  });

  it('keeps the interval it was given, 30 minutes by default', async () => {
    const agent = app.agent();
    const first = await during(agent, (session) => {
      const { maxInactiveInterval } = session;
      session.maxInactiveInterval = 600;
      session.setAttribute('a', 1);
      return { maxInactiveInterval };
    });
    expect(first.value).toEqual({ maxInactiveInterval: 1800 });
    const second = await during(agent, ({ maxInactiveInterval }) => ({ maxInactiveInterval }));
    expect(second.value).toEqual({ maxInactiveInterval: 600 });
  });

  it('keeps, lists and loses attributes across requests', async () => {
    const agent = app.agent();
    await during(agent, (session) => {
      session.setAttribute('a', 'A');
      session.setAttribute('b', 'B');
      return {};
    });
    const seen = await during(agent, (session) => ({ names: session.attributeNames, a: session.getAttribute('a') }));
    expect(seen.value).toEqual({ names: ['a', 'b'], a: 'A' });
    await during(agent, (session) => ({ done: session.removeAttribute('a') }));
    expect((await during(agent, ({ attributeNames }) => ({ attributeNames }))).value).toEqual({
      attributeNames: ['b'],
    });
  });

  it('is a new one for an unknown token, whose cookie replaces that', async () => {
    const agent = app.agent();
    const unknown = 'a'.repeat(43);
    agent.setCookie(`SESSION=${unknown}`);
    const { value } = await during(agent, (session) => {
      session.setAttribute('a', 1);
      return { isNew: session.isNew };
    });
    expect(value).toEqual({ isNew: true });
    expect(agent.cookie('SESSION')).not.toBe(unknown);
  });

  it('may be ended twice, and still has its id and its times, but takes no change', async () => {
    const agent = app.agent();
    const first = await during(agent, (session) => {
      session.setAttribute('a', 1);
      return { id: session.id };
    });
    const { value } = await during(agent, (session) => {
      session.invalidate();
      session.invalidate();
      const { id, isNew, creationTime, lastAccessedTime, maxInactiveInterval } = session;
      const times = [typeof creationTime, typeof lastAccessedTime, maxInactiveInterval];
      return { id, isNew, times };
    });
    expect(value).toEqual({ ...first.value, isNew: false, times: ['number', 'number', 1800] });
  });
});

it('has no Secure where that is off, whatever the request', async () => {
  const session = { cookie: { secure: false } } as const;
  const { agent, app } = await startApp({
    trustProxy: 'loopback',
    session,
    controllers: [StepController],
    providers: [Step],
  });
  try {
    app.get(Step).run = (each) => ({ done: each.setAttribute('a', 1) });
    for (const headers of [{}, { 'x-forwarded-proto': 'https' }]) {
      expect((await agent().get('/', { headers })).setCookies[0]).not.toContain('Secure');
    }
  } finally {
    await closeApps();
  }
});
