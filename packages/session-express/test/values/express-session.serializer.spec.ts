import { MapSessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ExpressSessionSerializer } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { runIn, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

class ObjectId {
  constructor(private readonly hex: string) {}

  toJSON() {
    return this.hex;
  }
}

describe('ExpressSessionSerializer', () => {
  async function start() {
    const store = MapSessionModule.forRoot({ serializer: new ExpressSessionSerializer() });
    return (await startApp({ controllers: [StepController], store })).agent();
  }

  it('keeps values as JSON.stringify() writes them', async () => {
    const agent = await start();
    await runIn(agent, ({ session }) => {
      session.user = { id: new ObjectId('4f'), since: new Date(0), none: undefined, seen: new Map([[1, 2]]) };
      session.at = new Date(0);
    });
    expect(await runIn(agent, ({ session }) => [session.user, session.at])).toEqual([
      { id: '4f', since: '1970-01-01T00:00:00.000Z', seen: {} },
      '1970-01-01T00:00:00.000Z',
    ]);
  });

  it('refuses keys __proto__, and leaves them out of what others have stored', async () => {
    const agent = await start();
    await expect(runIn(agent, ({ session }) => void (session.a = JSON.parse('{"b":{"__proto__":1}}')))).rejects.toThrow(
      'Session attribute "a" holds a key `__proto__`',
    );
    await runIn(agent, ({ session }) => void (session.a = ['"__proto__":1']));
    expect(await runIn(agent, ({ session }) => session.a)).toEqual(['"__proto__":1']);
    const value = new ExpressSessionSerializer().deserialize('{"__proto__":{"isAdmin":true},"a":1}');
    expect(JSON.stringify(value)).toBe('{"a":1}');
  });

  it('refuses what JSON.stringify() leaves out, where it is assigned', async () => {
    const agent = await start();
    await expect(runIn(agent, ({ session }) => void (session.f = () => 1))).rejects.toThrow(
      'Session attribute "f" holds a function, which JSON cannot restore',
    );
  });
});
