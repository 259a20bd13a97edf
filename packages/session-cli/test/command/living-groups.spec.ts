import { PassThrough } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { CommandCall, ExitCode } from '../../src/command/command.js';
import { CommandOutput } from '../../src/command/command-output.js';
import { run as doctor } from '../../src/command/doctor.command.js';
import { run as groups } from '../../src/command/groups.command.js';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';

LeakGuard.install();

const OTHERS =
  'server,rights,clock,latency,memory,clients,persistence,notifications,instances,cleanup,overdue,dead-letters,format';

@Injectable()
class Handlers {
  @OnSessionEvent(SessionExpiredEvent)
  handle() {
    // There is nothing to do.
  }
}

let server: SteppableRedisServer;
let app: EventInstance;
beforeAll(async () => {
  server = await SteppableRedisServer.start();
  // It looks once in so long at each of several partitions where nothing happens.
  const redis = { url: server.url, partitions: 4, events: { group: 'mails', lease: '10m' } };
  app = await EventInstance.start({ redis, providers: [Handlers] });
});
afterAll(async () => {
  await app.stop();
  await server.stop();
});

type Run = (call: CommandCall) => Promise<ExitCode>;

async function run(command: Run, values: Readonly<Record<string, string>> = {}, flags: readonly string[] = []) {
  const [result, others] = [new PassThrough(), new PassThrough()];
  const call = { address: { url: server.url }, argument: undefined, values, flags: new Set(flags) };
  const output = new CommandOutput(true, result, others);
  const code = await command({ ...call, signal: new AbortController().signal, output });
  return { code, json: JSON.parse(String(result.read())) as Record<string, unknown> };
}

it('an instance that waits longer than a minute for events is one of its group', async () => {
  await eventually(async () => expect((await run(groups)).json).toMatchObject({ groups: [{ instances: 1 }] }));
  await server.stepClock(90_000);
  await app.module.get(LivingInstances, { strict: false }).sign();
  expect((await run(groups)).json).toMatchObject({ groups: [{ name: 'mails', instances: 1 }] });
  expect((await run(doctor, { ignore: OTHERS })).json).toEqual({ checks: [expect.objectContaining({ status: 'ok' })] });
  await expect(run(groups, { remove: 'mails' }, ['yes'])).rejects.toThrow('has instances that are alive');
});

it('another application does not remove its group, either', async () => {
  const other = await EventInstance.start({ redis: { url: server.url, partitions: 4, events: { group: 'others' } } });
  try {
    await server.stepClock(90_000);
    await app.module.get(LivingInstances, { strict: false }).sign();
    expect(await other.module.get(SessionEventGroups, { strict: false }).remove('mails')).toBe('live');
  } finally {
    await other.stop();
  }
});
