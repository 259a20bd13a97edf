import { Injectable, Logger, type Type } from '@nestjs/common';
import { jest } from '@jest/globals';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test, type TestingModule } from '@nestjs/testing';
import { OnSessionEvent } from '../../src/events/on-session-event.decorator.js';
import { SessionEventDispatcher } from '../../src/events/session-event.dispatcher.js';
import { SessionEventModule } from '../../src/events/session-event.module.js';
import { SessionEvent, SessionExpiredEvent, SessionIdChangedEvent } from '../../src/events/session.events.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';

const session = SessionSnapshot.empty('s', new JsonAttributeSerializer());
const expired = new SessionExpiredEvent({ sessionId: 's', at: 1, session });
const idChanged = new SessionIdChangedEvent({ sessionId: 's', at: 1, session, previousSessionId: 'r' });

describe('EventEmitterBridge', () => {
  let module: TestingModule;
  let heard: unknown[];
  const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);

  beforeEach(() => {
    heard = [];
    error.mockClear();
  });

  afterEach(() => module.close());
  afterAll(() => error.mockRestore());

  async function start(providers: Type[], ...options: Parameters<typeof EventEmitterModule.forRoot>) {
    const emitter = EventEmitterModule.forRoot(...options);
    module = await Test.createTestingModule({ imports: [SessionEventModule, emitter], providers }).compile();
    const dispatcher = module.get(SessionEventDispatcher);
    const early = dispatcher.dispatch(expired);
    await module.init();
    await early;
    return dispatcher;
  }

  @Injectable()
  class Listener {
    @OnEvent('session.expired')
    onExpired(event: SessionExpiredEvent) {
      heard.push(event);
    }

    @OnEvent('session.id-changed')
    onIdChanged(event: SessionIdChangedEvent) {
      heard.push(event);
    }
  }

  it('emits each event once, also those from before the application was ready', async () => {
    const dispatcher = await start([Listener]);
    await dispatcher.dispatch(idChanged);
    await dispatcher.dispatch(idChanged, { redelivered: true });
    expect(heard).toEqual([expired, idChanged]);
    expect(heard[0]).toBeInstanceOf(SessionExpiredEvent);
  });

  it('calls @OnSessionEvent again for a redelivered event, and listeners only once', async () => {
    @Injectable()
    class Both extends Listener {
      @OnSessionEvent(SessionEvent)
      handle() {
        heard.push('handler');
      }
    }
    const dispatcher = await start([Both]);
    await dispatcher.dispatch(expired, { redelivered: true });
    expect(heard).toEqual([expired, 'handler', 'handler']);
  });

  it('counts as a handler only when there is a listener for session events', async () => {
    @Injectable()
    class Elsewhere {
      @OnEvent('order.created')
      onOrder() {}
    }
    const dispatcher = await start([Elsewhere]);
    expect(dispatcher.hasHandlers).toBe(false);
    const emitter = module.get(EventEmitter2);
    emitter.on('session.created', () => undefined);
    expect(dispatcher.hasHandlers).toBe(true);
  });

  it('works with wildcards', async () => {
    @Injectable()
    class Wild {
      @OnEvent('session.*')
      onAny(event: SessionEvent) {
        heard.push(event.type);
      }
    }
    const dispatcher = await start([Wild], { wildcard: true });
    expect(dispatcher.hasHandlers).toBe(true);
    await dispatcher.dispatch(idChanged);
    expect(heard).toEqual(['expired', 'id-changed']);
  });

  it('takes session.* for a name where the application has not switched wildcards on', async () => {
    @Injectable()
    class Wild {
      @OnEvent('session.*')
      onAny(event: SessionEvent) {
        heard.push(event.type);
      }
    }
    const dispatcher = await start([Wild]);
    await dispatcher.dispatch(idChanged);
    expect([dispatcher.hasHandlers, heard]).toEqual([false, []]);
  });

  it('logs errors of listeners and does not fail the delivery, even with suppressErrors false', async () => {
    @Injectable()
    class Failing {
      @OnEvent('session.expired', { suppressErrors: false })
      async rejects() {
        await Promise.resolve();
        throw new Error('rejected');
      }
    }
    const dispatcher = await start([Failing]);
    module.get(EventEmitter2).prependListener('session.expired', () => {
      throw new Error('thrown');
    });
    await expect(dispatcher.dispatch(expired)).resolves.toBeUndefined();
    await dispatcher.idle();
    // Jest fails a test in which a rejection is left unhandled, which shows a turn later.
    await new Promise((resolve) => setImmediate(resolve));
    const message = 'An EventEmitter listener failed for session event expired-s';
    expect(error.mock.calls).toEqual([
      [message, expect.stringContaining('rejected')],
      [message, expect.stringContaining('thrown')],
    ]);
  });

  it('does not delay the delivery, and the shutdown waits for its listeners', async () => {
    let finish!: () => void;
    @Injectable()
    class Slow {
      @OnEvent('session.expired')
      async onExpired() {
        await new Promise<void>((resolve) => (finish = resolve));
        heard.push('finished');
      }
    }
    await start([Slow]);
    expect(heard).toEqual([]);
    const closed = module.close();
    setImmediate(finish);
    await closed;
    expect(heard).toEqual(['finished']);
  });

  it('waits for a late readiness watcher of the EventEmitter, and ignores one that failed', async () => {
    let ready!: () => void;
    const setReady = () => undefined;
    class Late {
      readonly setReady = setReady;
      readonly waitUntilReady = () => new Promise<void>((resolve) => (ready = resolve));
    }
    class Failed {}
    class OtherWatcher {
      readonly waitUntilReady = () => new Promise(() => undefined);
    }
    module = await Test.createTestingModule({
      imports: [SessionEventModule],
      providers: [
        Late,
        { provide: Failed, useValue: { setReady, waitUntilReady: () => Promise.reject(new Error('no')) } },
        OtherWatcher,
      ],
    }).compile();
    void module
      .get(SessionEventDispatcher)
      .ready()
      .then(() => heard.push('ready'));
    await module.init();
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual([]);
    ready();
    await module.get(SessionEventDispatcher).ready();
    expect(heard).toEqual(['ready']);
  });

  it('emits to one of two EventEmitters, since each of them has all the listeners', async () => {
    module = await Test.createTestingModule({
      imports: [SessionEventModule, EventEmitterModule.forRoot(), EventEmitterModule.forRoot({ maxListeners: 20 })],
      providers: [Listener],
    }).compile();
    await module.init();
    await module.get(SessionEventDispatcher).dispatch(expired);
    expect(heard).toEqual([expired]);
  });

  it('finds an EventEmitter of another copy of the package, renamed by a bundler, and no other provider', async () => {
    class Renamed {
      listenerCount = (name: string) => (name === 'session.expired' ? 1 : 0);
      emitAsync = async (...event: unknown[]) => void heard.push(...event);
    }
    class EventEmitter2 {
      listenerCount = () => 1;
    }
    module = await Test.createTestingModule({
      imports: [SessionEventModule],
      providers: [
        EventEmitter2,
        Renamed,
        { provide: 'EventEmitter2', useValue: { listenerCount: () => 1, emitAsync: () => heard.push('by name') } },
      ],
    }).compile();
    await module.init();
    const dispatcher = module.get(SessionEventDispatcher);
    expect(dispatcher.hasHandlers).toBe(true);
    await dispatcher.dispatch(expired);
    await dispatcher.dispatch(idChanged);
    expect(heard).toEqual(['session.expired', expired]);
  });
});
