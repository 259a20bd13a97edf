import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HandledName, HandlerMarks, NamedEventDispatcher } from '../../src/internal.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

type Bell = { readonly name: string };

const BELLS = new HandlerMarks<HandledName>('@OnBell', 'add BellModule.');
const LIGHTS = new HandlerMarks<HandledName>('@OnLight', 'add LightModule.');
const OnBell = () => BELLS.add<Bell>(undefined, {}, (broadcast) => ({ name: 'bell', broadcast }));
const OnLight = () => LIGHTS.add<Bell>(undefined, {}, (broadcast) => ({ name: 'light', broadcast }));

const heard: string[] = [];

@Injectable()
class Porter {
  @OnBell()
  @OnLight()
  look({ name }: Bell) {
    heard.push(name);
  }

  @OnLight()
  dim() {}
}

@Injectable()
class BellDispatcher extends NamedEventDispatcher<Bell> {
  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
  ) {
    const kind = {
      what: 'bells',
      module: 'BellModule',
      marks: BELLS,
      contextOf: () => ({ type: 'bell', eventId: '1' }),
    };
    const nameOf = ({ name }: Bell) => name;
    super({ ...kind, nameOf, shown: nameOf } as never, discovery, scanner, undefined);
  }
}

const warnedOf = async (providers: object[]) => {
  const { app, log } = await startApp({ providers: [DiscoveryService, MetadataScanner, ...providers] as never });
  return { app, lines: log.matching(/will never be called/) };
};

afterEach(closeApps);

describe('a method with two decorators', () => {
  it('is named for each of them that no dispatcher of the application calls', async () => {
    const { lines } = await warnedOf([Porter]);
    expect(lines).toEqual([
      expect.stringContaining('Porter.look with @OnBell will never be called: add BellModule.'),
      expect.stringContaining('Porter.dim, Porter.look with @OnLight will never be called: add LightModule.'),
    ]);
  });

  it('is called for the one, and named for the other', async () => {
    const { app, lines } = await warnedOf([Porter, BellDispatcher]);
    expect(lines).toEqual([expect.stringContaining('Porter.dim, Porter.look with @OnLight will never be called')]);
    await app.get(BellDispatcher).dispatch({ name: 'bell' });
    await app.get(BellDispatcher).dispatch({ name: 'light' });
    expect(heard).toEqual(['bell']);
  });
});
