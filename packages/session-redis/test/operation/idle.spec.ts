import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { PACE } from '../../../redis-events/src/configuration/event-rules.js';
import { commandStats } from '../support/command.stats.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const POLL = 1000;
const POLLS = 4;
/**
 * The read and the poll of its group, and the read of broadcast events, whose script has most of these commands. One of
 * them is the second read of a group whose first one ended a moment before the poll was due.
 */
const COMMANDS_PER_POLL = 18;

/** All commands of polls, and of the beats that tell whether a connection lives. */
// prettier-ignore
const OF_POLLS = ['evalsha', 'exists', 'get', 'hget', 'hmget', 'ping', 'xinfo|stream', 'xpending', 'xrange', 'xread', 'xreadgroup'];

/** The commands of the test itself. */
const OWN = ['info', 'client|list', 'config|resetstat'];

@Injectable()
class Handlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionEvent)
  handle({ id }: SessionEvent) {
    this.heard.push(id);
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ id }: SessionEvent) {
    this.heard.push(id);
  }
}

it.each([1, 4])('an instance at rest sends only its polls, with %d partitions', async (partitions) => {
  const store = await Store.open({ partitions });
  // With several partitions, an instance looks at each of them once per lease.
  const events = { lease: `${POLL}ms` };
  const redis = { url: store.server.url, partitions, cleanup: { cron: '0 0 0 29 2 *' }, events };
  const instance = await EventInstance.start({
    redis,
    providers: [Handlers],
    pace: { pollInterval: POLL, wishRenewal: PACE.wishRenewal },
  });
  try {
    const { heard } = instance.module.get(Handlers);
    await store.scripts.delete(await store.create({ cart: '"apple"' }));
    await eventually(() => heard.length === 4);
    const calls = async () => {
      const all = [...(await commandStats(store.client))].filter(([name]) => !OWN.includes(name));
      return new Map(all.map(([name, { calls }]) => [name, calls]));
    };
    const callsOfPolls = async (count: number) => {
      await store.client.config('RESETSTAT');
      return eventually(async () => {
        const counts = await calls();
        const polls = (counts.get('xpending') ?? 0) / partitions;
        expect(polls).toBeGreaterThanOrEqual(count);
        return { counts, polls };
      });
    };
    const isOfPolls = ([name]: [string, number]) => OF_POLLS.includes(name);
    // Until then it acknowledges the events, and sweeps once.
    await eventually(async () => expect([...(await callsOfPolls(1)).counts].every(isOfPolls)).toBe(true));
    const begin = performance.now();
    const { counts, polls } = await callsOfPolls(POLLS);
    // Later than the counts: a stall of this process or of Redis makes it longer, and the counts no higher.
    const duration = performance.now() - begin;
    expect(duration).toBeGreaterThan((polls - 1) * POLL * 0.95);
    expect([...counts].filter((each) => !isOfPolls(each))).toEqual([]);
    // Only reads cover several partitions in one command.
    const most = (Math.floor(duration / POLL) + 1) * COMMANDS_PER_POLL * partitions;
    const sum = [...counts.values()].reduce((total, count) => total + count, 0);
    expect(sum).toBeLessThanOrEqual(most);
  } finally {
    await instance.stop();
    await store.close();
  }
});
