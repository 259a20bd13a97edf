import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Controller,
  Global,
  Inject,
  Injectable,
  Logger,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Scope,
  type Type,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { EMPTY, from, of, tap, throwError } from 'rxjs';
import { SessionEventHandlingError } from '../../src/events/handler.dispatcher.js';
import {
  OnSessionEvent,
  OnSessionEventGap,
  type SessionEventClass,
  type SessionEventGap,
} from '../../src/events/on-session-event.decorator.js';
import { SessionEventDispatcher } from '../../src/events/session-event.dispatcher.js';
import { SessionEventModule } from '../../src/events/session-event.module.js';
import {
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
  SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
} from '../../src/events/session.events.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SessionIds } from '../../src/session/session-token.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { SESSION_OPTIONS } from '../../src/store.js';

const session = SessionSnapshot.empty('s', new JsonAttributeSerializer());
const init = { sessionId: 's', at: 1, session };
const created = new SessionCreatedEvent(init);
const deleted = new SessionDeletedEvent(init);
const expired = new SessionExpiredEvent(init);
const idChanged = new SessionIdChangedEvent({ ...init, previousSessionId: 'r' });

describe('SessionEventDispatcher', () => {
  let module: TestingModule | undefined;
  let log: string[];
  const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);

  beforeEach(() => {
    log = [];
    error.mockClear();
  });

  afterEach(async () => {
    await module?.close();
    module = undefined;
  });

  afterAll(() => error.mockRestore());

  async function compile(providers: Type[], controllers: Type[] = []): Promise<SessionEventDispatcher> {
    module = await Test.createTestingModule({ imports: [SessionEventModule], providers, controllers }).compile();
    return module.get(SessionEventDispatcher);
  }

  async function start(providers: Type[], controllers: Type[] = []): Promise<SessionEventDispatcher> {
    const dispatcher = await compile(providers, controllers);
    await module!.init();
    return dispatcher;
  }

  it('calls methods of providers and controllers by the class of the event, each once', async () => {
    abstract class Base {
      @OnSessionEvent(SessionIdChangedEvent)
      inherited(event: SessionIdChangedEvent) {
        log.push(`inherited ${event.previousSessionId}`);
      }
    }
    @Injectable()
    class Provider extends Base {
      readonly name = 'this';

      @OnSessionEvent(SessionEvent)
      all(event: SessionEvent) {
        log.push(`all ${event.type}`);
      }

      @OnSessionEvent(SessionDeletedEvent)
      @OnSessionEvent(SessionExpiredEvent)
      @OnSessionEvent(SessionEvent)
      ended() {
        log.push(`ended ${this.name}`);
      }
    }
    @Controller()
    class Page {
      @OnSessionEvent(SessionCreatedEvent)
      created() {
        log.push('page');
      }
    }
    const dispatcher = await start([Provider, { provide: 'alias', useExisting: Provider } as never], [Page]);
    expect(dispatcher.hasHandlers).toBe(true);
    await dispatcher.dispatch(created);
    await dispatcher.dispatch(deleted);
    await dispatcher.dispatch(idChanged);
    expect(log.join(', ')).toBe(
      'all created, ended this, page, all deleted, ended this, all id-changed, ended this, inherited r',
    );
  });

  it('calls no handler on behalf of the request that has caused the event', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    @Injectable()
    class Mails {
      @OnSessionEvent(SessionEvent)
      @OnSessionEvent(SessionEvent, { broadcast: true })
      async send() {
        seen.push(requests.getStore());
        await Promise.resolve();
        seen.push(requests.getStore());
      }
    }
    const dispatcher = await start([Mails]);
    await requests.run('of ann', () => Promise.all([dispatcher.dispatch(deleted), dispatcher.broadcast(deleted)]));
    expect(seen).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('has no handlers when no method handles events', async () => {
    @Injectable()
    class Idle {
      remind() {}
    }
    const dispatcher = await start([Idle]);
    expect(dispatcher.hasHandlers).toBe(false);
    await expect(dispatcher.dispatch(expired)).resolves.toBeUndefined();
  });

  it('refuses a static method, which nothing would call', () => {
    expect(() => {
      class Mails {
        @OnSessionEvent(SessionExpiredEvent)
        static send() {}
      }
      return Mails;
    }).toThrow('@OnSessionEvent() has no effect on the static method Mails.send');
  });

  it('subscribes to the Observable that a handler returns, as Nest does', async () => {
    @Injectable()
    class Mails {
      @OnSessionEvent(SessionExpiredEvent)
      send() {
        return from([1, 2]).pipe(tap((n) => log.push(`sent ${n}`)));
      }

      @OnSessionEvent(SessionExpiredEvent)
      fail() {
        return throwError(() => new TypeError('no mail'));
      }
    }
    const dispatcher = await start([Mails]);
    await expect(dispatcher.dispatch(expired)).rejects.toThrow(SessionEventHandlingError);
    expect(log).toEqual(['sent 1', 'sent 2']);
    expect(error).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['empty', EMPTY],
    ['of undefined', of(undefined)],
    ['of an error, as a value', of(new Error('a value'))],
  ])('takes an Observable that completes for done, also one that is %s', async (_, observable) => {
    @Injectable()
    class Mails {
      @OnSessionEvent(SessionExpiredEvent)
      send() {
        return observable;
      }
    }
    const dispatcher = await start([Mails]);
    await dispatcher.dispatch(expired);
    expect(error).not.toHaveBeenCalled();
  });

  it('runs every handler to its end, then names those that failed', async () => {
    @Injectable()
    class Carts {
      @OnSessionEvent(SessionExpiredEvent)
      throws() {
        throw new TypeError('no cart');
      }

      @OnSessionEvent(SessionExpiredEvent)
      async rejects() {
        await Promise.resolve();
        throw 'no mail';
      }

      @OnSessionEvent(SessionExpiredEvent)
      async slow() {
        await new Promise((resolve) => setImmediate(resolve));
        log.push('slow');
      }
    }
    const dispatcher = await start([Carts]);
    const failure: unknown = await dispatcher.dispatch(expired).catch((reason: unknown) => reason);
    expect(log).toEqual(['slow']);
    expect(failure).toBeInstanceOf(SessionEventHandlingError);
    expect(failure).toMatchObject({
      message: 'Session event expired-s was not handled by Carts.throws, Carts.rejects',
      failed: [
        { name: 'Carts.throws', cause: new TypeError('no cart') },
        { name: 'Carts.rejects', cause: 'no mail' },
      ],
      succeeded: ['Carts.slow'],
      errors: [new TypeError('no cart'), 'no mail'],
    });
    expect(error.mock.calls.map(([message]) => String(message))).toEqual([
      'Carts.throws failed to handle session event expired-s',
      'Carts.rejects failed to handle session event expired-s',
    ]);
    await expect(dispatcher.idle()).resolves.toBeUndefined();
  });

  it('is idle only when the handlers of what other handlers have caused are done as well', async () => {
    @Injectable()
    class Chain {
      @OnSessionEvent(SessionEvent)
      async handle({ sessionId }: SessionEvent) {
        const left = Number(sessionId);
        if (left > 0) void dispatcher.dispatch(new SessionExpiredEvent({ ...init, sessionId: `${left - 1}` }));
        await new Promise((resolve) => setImmediate(resolve));
        log.push(sessionId);
      }
    }
    const dispatcher: SessionEventDispatcher = await start([Chain]);
    for (let again = 0; again < 2; again++) {
      void dispatcher.dispatch(new SessionExpiredEvent({ ...init, sessionId: '3' }));
      await dispatcher.idle();
      expect(log.splice(0)).toEqual(['3', '2', '1', '0']);
    }
  });

  it('calls handlers of the group for dispatched events only, and broadcast handlers for broadcast events only', async () => {
    @Injectable()
    class Sockets {
      @OnSessionEvent(SessionDeletedEvent, { broadcast: true })
      @OnSessionEvent(SessionExpiredEvent, { broadcast: true })
      close(event: SessionEvent) {
        log.push(`close ${event.type}`);
      }

      @OnSessionEvent(SessionCreatedEvent)
      @OnSessionEvent(SessionExpiredEvent, { broadcast: true })
      both(event: SessionEvent) {
        log.push(`both ${event.type}`);
      }
    }
    const dispatcher = await start([Sockets]);
    expect([dispatcher.hasHandlers, dispatcher.hasBroadcastHandlers]).toEqual([true, true]);
    for (const event of [created, deleted, expired]) await dispatcher.dispatch(event);
    expect(log).toEqual(['both created']);
    log = [];
    for (const event of [created, deleted, expired]) await dispatcher.broadcast(event);
    expect(log).toEqual(['close deleted', 'close expired', 'both expired']);
  });

  it('does not count broadcast handlers as handlers of the group', async () => {
    @Injectable()
    class Cache {
      @OnSessionEvent(SessionEvent, { broadcast: true })
      forget() {}
    }
    const dispatcher = await start([Cache]);
    expect([dispatcher.hasHandlers, dispatcher.hasBroadcastHandlers]).toEqual([false, true]);
  });

  it('shows no session id that is a token: neither in a line of the log nor in an error', async () => {
    class FailingEmitter {
      listenerCount() {
        return 1;
      }

      emitAsync() {
        return Promise.reject(new Error('no'));
      }
    }
    @Injectable()
    class Cache {
      @OnSessionEvent(SessionEvent)
      keep() {
        throw new Error('no');
      }

      @OnSessionEvent(SessionEvent, { broadcast: true })
      forget() {
        throw new Error('no');
      }
    }
    @Global()
    @Module({
      providers: [{ provide: SESSION_OPTIONS, useValue: { ids: new SessionIds(undefined, 'plain') } }],
      exports: [SESSION_OPTIONS],
    })
    class Options {}
    module = await Test.createTestingModule({
      imports: [SessionEventModule, Options],
      providers: [Cache, FailingEmitter],
    }).compile();
    await module.init();
    const dispatcher = module.get(SessionEventDispatcher);
    const token = 'A'.repeat(43);
    const event = new SessionExpiredEvent({ ...init, sessionId: token });
    const failure: unknown = await dispatcher.dispatch(event).catch((reason: unknown) => reason);
    await dispatcher.broadcast(event);
    await dispatcher.idle();
    const shown = [String(failure), ...error.mock.calls.map(([message]) => String(message))];
    expect(shown).toHaveLength(4);
    for (const text of shown) {
      expect(text).toContain('expired-sha256:');
      expect(text).not.toContain(token);
    }
  });

  it('calls the methods for gaps, and logs the failures of these and of broadcast handlers', async () => {
    @Injectable()
    class Cache {
      @OnSessionEvent(SessionEvent, { broadcast: true })
      async forget() {
        await Promise.resolve();
        throw new TypeError('not there');
      }

      @OnSessionEventGap()
      clear(gap: SessionEventGap) {
        log.push(`clear ${gap.since}`);
      }

      @OnSessionEventGap()
      fails() {
        throw new TypeError('cannot');
      }
    }
    const dispatcher = await start([Cache]);
    await dispatcher.broadcast(expired);
    await dispatcher.reportGap({ since: 7 });
    expect(log).toEqual(['clear 7']);
    expect(error.mock.calls.map(([message]) => String(message))).toEqual([
      'Cache.forget failed to handle session event expired-s',
      'Cache.fails failed to handle a gap',
    ]);
  });

  it('calls a handler of SessionDestroyedEvent for deletions and expiries only', async () => {
    @Injectable()
    class Carts {
      @OnSessionEvent(SessionDestroyedEvent)
      remind({ eventName }: SessionDestroyedEvent) {
        log.push(eventName);
      }
    }
    const dispatcher = await start([Carts]);
    for (const event of [created, idChanged, deleted, expired]) await dispatcher.dispatch(event);
    expect(log).toEqual(['session.deleted', 'session.expired']);
  });

  it('does not call a handler that has succeeded again', async () => {
    let isBroken = true;
    @Injectable()
    class Carts {
      @OnSessionEvent(SessionExpiredEvent)
      remind() {
        log.push('carts');
        if (isBroken) throw new Error('no mail');
      }
    }
    @Injectable()
    class Audit {
      @OnSessionEvent(SessionEvent)
      write() {
        log.push('audit');
      }
    }
    const dispatcher = await start([Carts, Audit]);
    const failure: unknown = await dispatcher.dispatch(expired).catch((reason: unknown) => reason);
    expect(failure).toMatchObject({ failed: [{ name: 'Carts.remind' }], succeeded: ['Audit.write'] });
    isBroken = false;
    await dispatcher.dispatch(expired, { redelivered: true, done: ['Audit.write'] });
    expect(log).toEqual(['carts', 'audit', 'carts']);
  });

  describe('two handlers of one name', () => {
    const listener = (...events: SessionEventClass[]) => {
      class Listener {
        handle() {}

        @OnSessionEvent(SessionEvent, { broadcast: true })
        hear() {}
      }
      const handle = Object.getOwnPropertyDescriptor(Listener.prototype, 'handle')!;
      for (const event of events) OnSessionEvent(event)(Listener.prototype, 'handle', handle);
      Injectable()(Listener);
      return Listener;
    };
    const inModule = (name: string, provider: Type) => {
      const made = { [name]: class {} }[name]!;
      Module({ providers: [provider] })(made);
      return made;
    };
    const startModules = async (...imports: Type[]) => {
      module = await Test.createTestingModule({ imports: [SessionEventModule, ...imports] }).compile();
      await module.init();
    };
    const message = (where: string) =>
      `SessionModule: Listener.handle is a handler of the same event twice, ${where}. Handlers are told apart by this ` +
      'name, so each would be called again when the other one fails. Rename one of the classes. If it is one class, ' +
      'provide it in one module only.';

    it('of the same event fail the start, which names their modules', async () => {
      const [one, other] = [listener(SessionExpiredEvent), listener(SessionDestroyedEvent)];
      await expect(startModules(inModule('Orders', one), inModule('Billing', other))).rejects.toThrow(
        message('in Orders and in Billing'),
      );
      await expect(start([one, other])).rejects.toThrow(message('in RootTestModule'));
    });

    it('that are one class in two modules fail the start as well', async () => {
      const one = listener(SessionExpiredEvent);
      await expect(startModules(inModule('Orders', one), inModule('Billing', one))).rejects.toThrow(
        message('in Orders and in Billing'),
      );
    });

    it('of different events, and those of subclasses, are told apart', async () => {
      class Orders extends listener(SessionCreatedEvent) {}
      class Billing extends listener(SessionCreatedEvent) {}
      for (const each of [Orders, Billing]) Injectable()(each);
      const dispatcher = await start([listener(SessionExpiredEvent), listener(SessionDeletedEvent), Orders, Billing]);
      expect(dispatcher.handlerNames).toEqual(['Billing.handle', 'Listener.handle', 'Orders.handle']);
    });
  });

  it('starts handlers in the order of the calls, after every start hook of the application', async () => {
    @Injectable()
    class Connection implements OnApplicationBootstrap {
      async onApplicationBootstrap() {
        await new Promise((resolve) => setTimeout(resolve, 5));
        log.push('connected');
      }
    }
    @Injectable()
    class Handler {
      @OnSessionEvent(SessionEvent)
      async handle(event: SessionEvent) {
        log.push(event.type);
        await Promise.resolve();
      }
    }
    const dispatcher = await compile([Handler, Connection]);
    const before = [created, expired].map((event) => dispatcher.dispatch(event));
    await expect(dispatcher.idle()).resolves.toBeUndefined();
    await module!.init();
    await dispatcher.ready();
    await Promise.all([...before, dispatcher.dispatch(deleted)]);
    expect(log).toEqual(['connected', 'created', 'expired', 'deleted']);
  });

  it('is ready after the start hooks of global modules and of modules far from the root', async () => {
    @Injectable()
    class Late implements OnApplicationBootstrap {
      async onApplicationBootstrap() {
        await new Promise((resolve) => setImmediate(resolve));
        log.push('hook');
      }
    }
    @Module({ providers: [Late], imports: [SessionEventModule] })
    class Far {}
    @Global()
    @Module({ providers: [Late], imports: [Far, SessionEventModule], exports: [SessionEventModule] })
    class Everywhere {}
    @Module({ imports: [Everywhere], providers: [Late] })
    class Root implements OnApplicationBootstrap {
      constructor(@Inject(SessionEventDispatcher) dispatcher: SessionEventDispatcher) {
        void dispatcher.ready().then(() => log.push('ready'));
      }

      async onApplicationBootstrap() {
        await new Promise((resolve) => setImmediate(resolve));
        log.push('root');
      }
    }
    module = await Test.createTestingModule({ imports: [Root] }).compile();
    await module.init();
    await module.get(SessionEventDispatcher, { strict: false }).ready();
    expect(log).toEqual(['hook', 'hook', 'hook', 'root', 'ready']);
  });

  it('is drained at shutdown before any other part of the application shuts down', async () => {
    let finish!: () => void;
    @Injectable()
    class Handler implements OnApplicationShutdown {
      @OnSessionEvent(SessionExpiredEvent)
      async handle() {
        log.push('begun');
        await new Promise<void>((resolve) => (finish = resolve));
        log.push('finished');
      }

      onApplicationShutdown() {
        log.push('shut down');
      }
    }
    const dispatcher = await start([Handler]);
    void dispatcher.dispatch(expired);
    const closed = module!.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(['begun']);
    finish();
    await closed;
    expect(log).toEqual(['begun', 'finished', 'shut down']);
  });

  it('stops waiting for handlers when it is told to give up', async () => {
    @Injectable()
    class Handler {
      @OnSessionEvent(SessionExpiredEvent)
      @OnSessionEvent(SessionExpiredEvent, { broadcast: true })
      handle() {
        log.push('begun');
        return new Promise(() => undefined);
      }
    }
    const dispatcher = await start([Handler]);
    const dispatched = dispatcher.dispatch(expired);
    const broadcast = dispatcher.broadcast(expired);
    const closed = module!.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(['begun', 'begun']);
    dispatcher.giveUp();
    await expect(dispatched).rejects.toThrow('The application shut down before all session events were handled');
    await expect(broadcast).resolves.toBeUndefined();
    await closed;
    await expect(dispatcher.dispatch(deleted)).rejects.toThrow('shut down before');
  });

  it('closes when the application failed to start', async () => {
    @Injectable()
    class Broken implements OnApplicationBootstrap {
      onApplicationBootstrap() {
        throw new Error('no database');
      }

      @OnSessionEvent(SessionEvent)
      handle() {
        log.push('called');
      }
    }
    const dispatcher = await compile([Broken]);
    void dispatcher.dispatch(expired);
    await expect(module!.init()).rejects.toThrow('no database');
    await module!.close();
    expect(log).toEqual([]);
  });

  describe('at start refuses a class', () => {
    @Injectable({ scope: Scope.REQUEST })
    class Requested {
      @OnSessionEvent(SessionExpiredEvent)
      handle() {}
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      @OnSessionEvent(SessionExpiredEvent)
      handle() {}
    }
    @Injectable({ scope: Scope.REQUEST })
    class User {}
    @Injectable()
    class Dependent {
      constructor(@Inject(User) readonly user: User) {}

      @OnSessionEvent(SessionExpiredEvent)
      handle() {}
    }
    @Controller({ path: 'x', scope: Scope.REQUEST })
    class Page {
      @OnSessionEvent(SessionExpiredEvent)
      handle() {}
    }

    it('that is request-scoped and has a method for gaps', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class Cache {
        @OnSessionEventGap()
        clear() {}
      }
      await compile([Cache]);
      await expect(module!.init()).rejects.toMatchObject({
        name: 'InvalidSessionOptionsError',
        problems: [expect.stringContaining('@OnSessionEventGap cannot be used on Cache.clear: its class is')],
      });
    });

    it.each<[string, Type[], Type[]]>([
      ['Requested', [Requested], []],
      ['Transient', [Transient], []],
      ['Dependent', [User, Dependent], []],
      ['Page', [], [Page]],
    ])('%s, which is not a singleton', async (name, providers, controllers) => {
      const dispatcher = await compile(providers, controllers);
      await expect(module!.init()).rejects.toMatchObject({
        name: 'InvalidSessionOptionsError',
        problems: [
          expect.stringContaining(
            `@OnSessionEvent cannot be used on ${name}.handle: its class is request-scoped or transient`,
          ),
        ],
      });
      expect(() => dispatcher.hasHandlers).toThrow(`${name}.handle`);
    });
  });

  it('refuses at compile time a method that does not take the event', () => {
    class Handlers {
      @OnSessionEvent(SessionExpiredEvent)
      fewer() {}

      @OnSessionEvent(SessionIdChangedEvent)
      wider(_event: SessionEvent) {}

      // @ts-expect-error: takes only some of the events that it would be called with
      @OnSessionEvent(SessionEvent)
      narrower(_event: SessionIdChangedEvent) {}

      // @ts-expect-error: takes something else
      @OnSessionEvent(SessionExpiredEvent)
      other(_event: string) {}

      // @ts-expect-error: takes something else than a gap
      @OnSessionEventGap()
      gap(_gap: SessionEvent) {}
    }
    expect(Handlers).toBeDefined();
  });

  it.each<[string, () => unknown, string]>([
    // @ts-expect-error: no event at all
    ['another class', () => OnSessionEvent(Date), 'but got another class'],
    // @ts-expect-error: as a class in a circular import is
    ['undefined', () => OnSessionEvent(undefined), 'but got undefined'],
    // @ts-expect-error: the name of an EventEmitter
    ['a name', () => OnSessionEvent('session.created'), 'SessionCreatedEvent, .* but got a value of type string'],
    [
      'another option',
      () => OnSessionEvent(SessionEvent, { broadcasts: true } as object),
      'no option "broadcasts": .*`broadcast`',
    ],
    // @ts-expect-error: no boolean
    ['another value', () => OnSessionEvent(SessionEvent, { broadcast: 'yes' }), 'true or false .* `broadcast`'],
  ])('refuses %s where the class is loaded', (_, decorate, problem) => {
    expect(decorate).toThrow(TypeError);
    expect(decorate).toThrow(new RegExp(`^@OnSessionEvent\\(\\) .*${problem}`));
  });
});
