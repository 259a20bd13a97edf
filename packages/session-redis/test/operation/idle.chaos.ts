import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PACE } from '../../../redis-events/src/configuration/event-rules.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { print } from '../support/figures.js';
import { SentCommands } from '../support/sent.commands.js';

LeakGuard.install();

const MINUTE = 60_000;
const LONG = 15 * MINUTE;

/** Seconds after which an instance has looked at each partition twice: `events.lease` is 30 s. */
const SETTLED = 40;
/** Seconds: two ticks of the cleanup. */
const WINDOW = 120;

@Injectable()
class Handlers {
  @OnSessionEvent(SessionEvent)
  handle() {}
}

@Injectable()
class BroadcastHandlers {
  @OnSessionEvent(SessionEvent)
  handle() {}

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear() {}
}

interface Rest {
  readonly partitions: number;
  readonly broadcast: boolean;
}

interface Cost extends Rest {
  /** A second. */
  readonly commands: number;
  /** The share of a core that Redis takes, its own upkeep included. */
  readonly processor: number;
}

/** Resolves when the clock of Redis says so, in seconds. */
const reach = (now: () => Promise<number>, time: number) =>
  eventually(async () => (await now()) >= time, { timeout: LONG, interval: 1000 });

async function costOf({ partitions, broadcast }: Rest): Promise<Cost> {
  const server = await RedisServer.start();
  const client = new Redis(server.url);
  const now = async () => Number((await client.time())[0]);
  const used = async () => {
    const info = await client.info('cpu');
    return ['sys', 'user'].reduce((sum, of) => sum + Number(new RegExp(`used_cpu_${of}:(\\S+)`).exec(info)?.[1]), 0);
  };
  try {
    const providers = [broadcast ? BroadcastHandlers : Handlers];
    const instance = await EventInstance.start({ redis: { url: server.url, partitions }, pace: PACE, providers });
    try {
      await reach(now, (await now()) + SETTLED);
      const [before, at] = [await used(), await now()];
      await reach(now, at + WINDOW);
      const processor = ((await used()) - before) / ((await now()) - at);
      const sent = await SentCommands.on(server);
      const begin = await sent.now();
      // What it asks itself does not count.
      await reach(() => sent.now(), begin + WINDOW);
      const end = await sent.now();
      sent.close();
      return { partitions, broadcast, commands: sent.between(begin, end).length / (end - begin), processor };
    } finally {
      await instance.stop();
    }
  } finally {
    client.disconnect();
    await server.stop();
  }
}

it(
  'an instance at rest sends few commands a second, however many partitions there are',
  async () => {
    const rests = [1, 4, 64, 1024].flatMap((partitions) => [
      { partitions, broadcast: false },
      { partitions, broadcast: true },
    ]);
    const costs = await Promise.all(rests.map(costOf));
    for (const { partitions, broadcast, commands, processor } of costs) {
      const what = `${partitions} partitions${broadcast ? ', broadcast' : ''}`;
      print(`${what}: ${commands.toFixed(1)} commands/s, ${(processor * 100).toFixed(2)} % of a core`);
      // The sign of life alone is 0.4 a second: four every ten.
      expect(commands).toBeLessThan(6.5 + 0.2 * partitions);
    }
  },
  LONG,
);
