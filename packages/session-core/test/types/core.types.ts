// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import {
  Authenticated,
  MapSessionModule,
  OnSecurityEvent,
  OnSessionEvent,
  Public,
  RecentlyAuthenticated,
  SecurityEvent,
  Session,
  SessionAttribute,
  type SessionBoundError,
  type SessionContext,
  SessionCreationRefusedError,
  type SessionDestroyedEvent,
  SessionEvent,
  SessionExpiredEvent,
  SessionGoneError,
  SessionIdChangedEvent,
  type SessionInfo,
  SessionModule,
  SessionOutagePolicy,
  type SessionRepository,
  type Sessions,
} from '@nest-session/core';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
    visits: number;
  }
}

export class DeclaredAttributes {
  read(session: Session): void {
    expectTypeOf(session.getAttribute('items')).toEqualTypeOf<string[] | undefined>();
    expectTypeOf(session.getRequiredAttribute('items')).toEqualTypeOf<string[]>();
    expectTypeOf(session.getAttributeOrDefault('visits', 0)).toEqualTypeOf<number>();
    // @ts-expect-error the default has to be of the declared type
    const visits: number = session.getAttributeOrDefault('visits', 'none');
    // @ts-expect-error an attribute that may be missing is no array
    const items: string[] = session.getAttribute('items');
    void [visits, items];
  }

  write(session: Session): void {
    session.setAttribute('items', ['apple']);
    session.setAttribute('items', undefined);
    session.setAttribute('items', null);
    // @ts-expect-error not the declared type
    session.setAttribute('items', 'apple');
    // @ts-expect-error a name is a string
    session.setAttribute(1, 'apple');
  }

  update(session: Session): void {
    const updated = session.updateAttribute('visits', (visits = 0) => visits + 1);
    expectTypeOf(updated).toEqualTypeOf<Promise<number | undefined>>();
    void session.updateAttribute('items', (current) => {
      expectTypeOf(current).toEqualTypeOf<string[] | undefined>();
      return current;
    });
    // @ts-expect-error an update returns the declared type
    const refused = session.updateAttribute('visits', () => 'one');
    // @ts-expect-error the result is a promise, which has to be awaited
    const visits: number = session.updateAttribute('visits', (current = 0) => current + 1);
    void [refused, visits];
  }
}

export class OtherNames {
  use(session: Session, name: string): void {
    // @ts-expect-error not declared
    session.getAttribute('theme');
    // @ts-expect-error not declared, whatever its type
    session.getAttribute<string>('theme');
    // @ts-expect-error not declared, and the type of the result says nothing
    const theme: string = session.getAttribute('theme')!;
    // @ts-expect-error not declared
    session.getRequiredAttribute('theme');
    // @ts-expect-error not declared
    session.getAttributeOrDefault('theme', 'dark');
    // @ts-expect-error the default has to be of the declared type
    session.getAttributeOrDefault('visits', 'none');
    // @ts-expect-error not declared
    session.setAttribute('theme', 'dark');
    // @ts-expect-error not declared
    session.removeAttribute('theme');
    // @ts-expect-error not declared
    void session.updateAttribute('theme', () => 'dark');
    // @ts-expect-error any name
    session.getAttribute(name);
    void theme;
  }

  useAll(session: Session): void {
    expectTypeOf(session.attributeNames).toEqualTypeOf<('items' | 'visits')[]>();
    for (const name of session.attributeNames) session.removeAttribute(name);
  }

  handle(@SessionAttribute('items') items: string[]): void {
    void items;
  }

  // @ts-expect-error not declared
  misspelt(@SessionAttribute('itmes') items: string[]): void {
    void items;
  }
}

export class SessionAsTypeAndDecorator {
  handle(@Session() session: Session): void {
    session.principalName = 'ann';
    session.signIn('ann');
    session.signIn('ann', { remember: true, keep: ['items'] });
    // @ts-expect-error no attribute of that name
    session.signIn('ann', { keep: ['other'] });
    // @ts-expect-error no option of that name
    session.signIn('ann', { rememberMe: true });
    // @ts-expect-error nobody
    session.signIn(undefined);
    session.signOut();
    expectTypeOf(session.authenticatedAt).toEqualTypeOf<number | undefined>();
    // @ts-expect-error read-only
    session.authenticatedAt = 0;
    session.maxInactiveInterval = '30m';
    session.absoluteTimeout = 3600;
    expectTypeOf(session.maxInactiveInterval).toEqualTypeOf<number>();
    // @ts-expect-error read-only
    session.id = 'other';
    // @ts-expect-error read-only
    session.isNew = true;
    // @ts-expect-error read-only
    session.creationTime = 0;
    // @ts-expect-error read-only
    session.lastAccessedTime = 0;
    // @ts-expect-error a timeout is seconds or a duration
    session.maxInactiveInterval = true;
    // @ts-expect-error attributes are no properties
    session.items = [];
  }

  // @ts-expect-error the decorator has to be called
  withoutCall(@Session session: Session): void {
    void session;
  }

  // @ts-expect-error Session is an interface: there is no such class
  create = () => new Session();
}

export class Handlers {
  @OnSessionEvent(SessionExpiredEvent)
  expired(event: SessionExpiredEvent): Promise<void> {
    expectTypeOf(event.session.getAttribute('items')).toEqualTypeOf<string[] | undefined>();
    // @ts-expect-error the session of an event is a snapshot
    event.session.setAttribute('items', []);
    // @ts-expect-error read-only
    event.sessionId = 'other';
    return Promise.resolve();
  }

  @OnSessionEvent(SessionExpiredEvent)
  anyEnd(event: SessionDestroyedEvent): void {
    void event;
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  all(event: SessionEvent): void {
    if (event instanceof SessionIdChangedEvent) expectTypeOf(event.previousSessionId).toEqualTypeOf<string>();
    // @ts-expect-error only on SessionIdChangedEvent
    void event.previousSessionId;
  }

  // @ts-expect-error the method takes another event
  @OnSessionEvent(SessionExpiredEvent)
  wrongEvent(event: SessionIdChangedEvent): void {
    void event;
  }

  // @ts-expect-error the method asks for more than every event has
  @OnSessionEvent(SessionEvent)
  tooNarrow(event: SessionIdChangedEvent): void {
    void event;
  }

  // @ts-expect-error no event
  @OnSessionEvent(Date)
  noEvent(): void {}

  // @ts-expect-error an unknown option
  @OnSessionEvent(SessionEvent, { everywhere: true })
  unknownOption(): void {}
}

export function options(): unknown[] {
  return [
    SessionModule.forRoot({ timeout: '30m', touchInterval: 0, cookie: { sameSite: 'lax', secure: 'auto' } }),
    SessionModule.forRootAsync({ useFactory: () => Promise.resolve({ timeout: 'never' }) }),
    MapSessionModule.forRoot(),
    // @ts-expect-error an unknown option
    SessionModule.forRoot({ timeOut: '30m' }),
    // @ts-expect-error a number has no unit
    SessionModule.forRoot({ timeout: 30 }),
    // @ts-expect-error an unknown option of the cookie
    SessionModule.forRoot({ cookie: { samesite: 'lax' } }),
    // @ts-expect-error no such value
    SessionModule.forRoot({ cookie: { sameSite: 'Lax' } }),
    SessionModule.forRoot({ cookie: { domain: ['example.com', 'example.org'] as const } }),
    // @ts-expect-error no regular expression runs on what clients send
    SessionModule.forRoot({ cookie: { domain: [/example/] } }),
    // @ts-expect-error an option of Redis
    SessionModule.forRoot({ url: 'redis://localhost' }),
    // @ts-expect-error no such policy
    SessionOutagePolicy('optional'),
  ];
}

export async function repository(sessions: SessionRepository): Promise<void> {
  expectTypeOf(await sessions.findById('id')).toEqualTypeOf<Session | null>();
  // @ts-expect-error not every store has an index
  await sessions.findByPrincipalName('ann');
}

export async function principals(sessions: Sessions, session: Session, event: SessionExpiredEvent): Promise<void> {
  for await (const info of sessions.ofPrincipal('ann')) {
    expectTypeOf(info).toEqualTypeOf<SessionInfo>();
    expectTypeOf(info.authenticatedAt).toEqualTypeOf<number | undefined>();
    expectTypeOf(info.device?.userAgent).toEqualTypeOf<string | undefined>();
    // @ts-expect-error attributes are not loaded
    void info.getAttribute('items');
  }
  expectTypeOf(await sessions.count('ann')).toEqualTypeOf<number>();
  expectTypeOf(await sessions.end(session.id, { of: 'ann' })).toEqualTypeOf<boolean>();
  expectTypeOf(await sessions.endAll('ann')).toEqualTypeOf<number>();
  await sessions.endAll('ann', { except: session });
  await sessions.endAll('ann', { except: event.session });
  await sessions.endAll('ann', { except: session.id });
  // @ts-expect-error one session
  await sessions.endAll('ann', { except: [session.id] });
  SessionModule.forRoot({ devices: true });
  SessionModule.forRoot({ devices: { address: 'none', addressOf: ({ headers }) => String(headers['x-real-ip']) } });
  // @ts-expect-error no such form
  SessionModule.forRoot({ devices: { address: 'short' } });
}

export function context(sessions: SessionContext): void {
  expectTypeOf(sessions.session).toEqualTypeOf<Session>();
  // @ts-expect-error of @nest-session/core/internal
  void sessions.request;
  // @ts-expect-error of @nest-session/core/internal
  sessions.run(() => undefined);
}

type Core = typeof import('@nest-session/core');

export type NotForApplications = [
  // @ts-expect-error of @nest-session/core/store
  Core['TrackedSession'],
  // @ts-expect-error of @nest-session/core/store
  Core['SessionEventDispatcher'],
  // @ts-expect-error of @nest-session/core/store
  Core['OptionReader'],
  // @ts-expect-error of @nest-session/core/internal
  Core['SessionExchange'],
  // @ts-expect-error of @nest-session/redis
  Core['RedisSessionModule'],
  // @ts-expect-error internal
  Core['resolveSessionOptions'],
];

@Authenticated()
export class GuardedController {
  @RecentlyAuthenticated('5m')
  recent(): void {}

  @Public()
  open(session: Session): number | undefined {
    expectTypeOf(session.authenticatedAt).toEqualTypeOf<number | undefined>();
    // @ts-expect-error only a sign-in sets it
    session.authenticatedAt = 0;
    return session.authenticatedAt;
  }

  // @ts-expect-error a bare number has no unit
  @RecentlyAuthenticated(300)
  refused(): void {}

  // @ts-expect-error how long ago the sign-in may be has to be said
  @RecentlyAuthenticated()
  alsoRefused(): void {}
}

export const indexed = SessionModule.forRoot({
  indexes: {
    first: (session) => session.getAttribute('items')?.[0],
    company: ({ principalName }) => principalName?.split('@')[1],
    // @ts-expect-error an index has strings
    visits: (session) => session.getAttribute('visits'),
    // @ts-expect-error an index reads attributes only
    id: (session) => session.id,
    // @ts-expect-error the value is known at once
    later: async (session) => session.getAttribute('items')?.[0],
  },
});

export const bounded = SessionModule.forRoot({
  maxAttributes: 10,
  anonymousTimeout: '10m',
  mayCreate: ({ url, headers }, address) => address !== undefined && url !== headers['x-path'],
});

export const limited = SessionModule.forRoot({
  // @ts-expect-error it says yes or no
  mayCreate: () => 'no',
  // @ts-expect-error a number of bytes
  maxSessionSize: '1 MB',
});

export const asked = SessionModule.forRoot({ mayCreate: (_, address) => Promise.resolve(address === '127.0.0.1') });

export function refused(error: SessionBoundError | SessionCreationRefusedError): number {
  if (error instanceof SessionCreationRefusedError) return error.getStatus();
  expectTypeOf(error.bound).toEqualTypeOf<SessionBoundError['bound']>();
  return error.limit;
}

export class SecurityHandlers {
  @OnSecurityEvent()
  all({ kind, remoteAddress, suppressed }: SecurityEvent): void {
    expectTypeOf(kind).toEqualTypeOf<SecurityEvent['kind']>();
    expectTypeOf(remoteAddress).toEqualTypeOf<string | undefined>();
    expectTypeOf(suppressed).toEqualTypeOf<number>();
  }

  @OnSecurityEvent('unknown-token', 'limit-reached')
  async some(): Promise<void> {}

  // @ts-expect-error no such kind
  @OnSecurityEvent('unknown')
  unknown(): void {}

  // @ts-expect-error takes something else
  @OnSecurityEvent('unknown-token')
  other(_event: string): void {}
}

export function goneSessions(session: Session, error: unknown): void {
  expectTypeOf(session.isGone).toEqualTypeOf<boolean>();
  // @ts-expect-error read-only
  session.isGone = true;
  if (error instanceof SessionGoneError) expectTypeOf(error.getStatus()).toEqualTypeOf<number>();
}
