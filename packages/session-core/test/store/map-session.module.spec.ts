import { Global, Injectable, Module, type Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { ManualClock, SessionEventRecorder } from '@nest-session/testing';
import { OnSessionEvent } from '../../src/events/on-session-event.decorator.js';
import { SessionEvent, SessionExpiredEvent } from '../../src/events/session.events.js';
import { IndexedSessionRepository } from '../../src/repository/indexed-session.repository.js';
import {
  MAP_SESSION_CLOCK,
  MapSessionModule,
  type MapSessionModuleOptions,
} from '../../src/memory/map-session.module.js';
import { MapSessionRepository } from '../../src/memory/map-session.repository.js';
import { SessionRepository } from '../../src/repository/session.repository.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SESSION_OPTIONS } from '../../src/configuration/session.module-definition.js';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';

const recorder = new SessionEventRecorder();

@Injectable()
class Recording {
  @OnSessionEvent(SessionEvent)
  record(event: SessionEvent) {
    recorder.record(event);
  }
}

@Global()
@Module({
  providers: [{ provide: SESSION_OPTIONS, useFactory: () => resolveSessionOptions({ timeout: '2s' }) }],
  exports: [SESSION_OPTIONS],
})
class TwoSeconds {}

describe('MapSessionModule', () => {
  let module: TestingModule | undefined;
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock();
  });

  afterEach(async () => {
    await module?.close();
    module = undefined;
    recorder.clear();
  });

  async function start(options?: MapSessionModuleOptions, ...providers: Provider[]): Promise<TestingModule> {
    const imports = [TwoSeconds, MapSessionModule.forRoot(options)];
    const testing = Test.createTestingModule({ imports, providers: [Recording, ...providers] });
    module = await testing.overrideProvider(MAP_SESSION_CLOCK).useValue(clock).compile();
    return module;
  }

  it('provides one repository under three tokens, with the timeout of the session module', async () => {
    const app = await start();
    const repository = app.get(SessionRepository);
    expect(repository).toBeInstanceOf(MapSessionRepository);
    expect([app.get(IndexedSessionRepository), app.get(MapSessionRepository)]).toEqual([repository, repository]);
    expect(repository.createSession().maxInactiveInterval).toBe(2);
  });

  it('reports an expired session by itself, and events from before the application started', async () => {
    const app = await start();
    const repository = app.get(SessionRepository);
    const session = repository.createSession();
    session.setAttribute('cart', ['apple']);
    await repository.save(session);
    expect(recorder.all()).toEqual([]);
    await app.init();
    clock.advance(2000);
    const event = await recorder.next(SessionExpiredEvent, session.id);
    expect(event.session.getAttribute('cart')).toEqual(['apple']);
    await app.close();
    expect(recorder.all().map(({ type }) => type)).toEqual(['created', 'expired']);
  });

  it('calls broadcast handlers too, since it is the only instance', async () => {
    @Injectable()
    class Cache {
      readonly forgotten: string[] = [];

      @OnSessionEvent(SessionEvent, { broadcast: true })
      forget(event: SessionEvent) {
        this.forgotten.push(event.id);
      }
    }
    const app = await start(undefined, Cache);
    await app.init();
    const repository = app.get(SessionRepository);
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await repository.save(session);
    await repository.deleteById(session.id);
    await app.close();
    expect(app.get(Cache).forgotten).toEqual([`created-${session.id}`, `deleted-${session.id}`]);
    expect(recorder.all().map(({ id }) => id)).toEqual(app.get(Cache).forgotten);
  });

  it('uses the serializer it is given', async () => {
    class Marked extends JsonAttributeSerializer {
      override serialize = (value: unknown) => `v1:${super.serialize(value)}`;
      override deserialize = (text: string) => super.deserialize(text.slice(3));
    }
    const app = await start({ serializer: new Marked() });
    const repository = app.get(MapSessionRepository);
    const session = repository.createSession();
    session.setAttribute('a', 'bc');
    await repository.save(session);
    expect((await repository.findById(session.id))!.getAttribute('a')).toBe('bc');
  });

  it('names missing modules and invalid options', async () => {
    const alone = Test.createTestingModule({ imports: [MapSessionModule.forRoot()] }).compile();
    await expect(alone).rejects.toThrow(
      'MapSessionModule: SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.',
    );
    await expect(start({ serialiser: {}, serializer: JSON } as never)).rejects.toThrow(
      'MapSessionModule: Option `serializer` must be an AttributeSerializer. ' +
        'Unknown option `serialiser`: known are',
    );
  });
});
