import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Injectable } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { Session } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

// The cases of Spring Session's own tests of its web layer by name, and the tests here that stand for each of them.

LeakGuard.install();

const NAMES = '`\\w+`(?:, `\\w+`)*';
const TEST = '\\n\\n- \\[.+\\]\\(\\S+\\)$';
const SAME = new RegExp(`^${NAMES}${TEST}`, 'gm');
const DIFFERENT = new RegExp(`^${NAMES}: .+\\.${TEST}`, 'gm');
const LEFT_OUT = new RegExp(`^${NAMES}: .+\\.$`, 'gm');

/** How many cases each of Spring's test classes has. */
const COUNTS = {
  SessionRepositoryFilterTests: 68,
  DefaultCookieSerializerTests: 47,
  CookieHttpSessionIdResolverTests: 12,
  HeaderHttpSessionIdResolverTests: 10,
  CompositeHttpSessionIdResolverTests: 5,
};

/** The lists of `spring-session.md`, by Spring's test class. The reporter checks that the tests in it run and pass. */
const SECTIONS = readFileSync(fileURLToPath(new URL('spring-session.md', import.meta.url)), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) => [section.slice(0, section.indexOf('\n')), section] as const);

const casesIn = (text: string) => [...text.matchAll(/`(\w+)`(?=[,:\n])/g)].map(([, name]) => name!);

it('lists the five test classes', () => {
  const counts = SECTIONS.map(([name, section]) => [name, casesIn(section).length]);
  expect(Object.fromEntries(counts)).toEqual(COUNTS);
});

describe.each(SECTIONS)('%s', (_, section) => {
  it('names each case once', () => {
    const names = casesIn(section);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  it('names a test, or the reason why there is none, for each case', () => {
    for (const [, heading, groups] of section.matchAll(/^### (.+)\n\n([^]*?)(?=\n### |$(?![^]))/gm)) {
      const entry = { 'The same': SAME, Different: DIFFERENT, 'Left out': LEFT_OUT }[heading!]!;
      expect(groups!.trim().replaceAll(entry, '').trim()).toBe('');
    }
  });
});

/** The handler of the next request, which returns the body of the response. */
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

  /** Sends a request whose handler is `run`; resolves to the value that the handler returned. */
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

  it('is another one for a client without a cookie', async () => {
    const start = (session: Session) => {
      session.setAttribute('a', 1);
      return { id: session.id };
    };
    const [first, second] = [await during(app.agent(), start), await during(app.agent(), start)];
    expect(first.value.id).not.toBe(second.value.id);
  });

  it('keeps its interval, which is 30 minutes by default', async () => {
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

  it('is a new one for an unknown token, and its cookie replaces that token', async () => {
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

  it('can be ended twice, and then still has its id and times but takes no changes', async () => {
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

it('has no Secure attribute when the option is off, whatever the request', async () => {
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
