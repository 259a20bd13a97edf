import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { deadline, DeadlineModule, Deadlines, type DeadlineEvent, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { COMMAND, jsonOf, runCommand, startCommand } from '../support/command.process.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';

LeakGuard.install();

const unpaid = deadline<{ card: string }>('unpaid-orders');
const reminder = deadline('reminders');

@Injectable()
class Handlers {
  fails = true;
  readonly heard: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  handle({ sessionId }: SessionDeletedEvent) {
    if (this.fails) throw new Error('the mail server is down');
    this.heard.push(sessionId);
  }

  @OnDeadline(unpaid)
  cancel({ key }: DeadlineEvent<typeof unpaid>) {
    this.heard.push(key);
  }
}

interface Letter {
  readonly id: string;
  readonly group: string;
  readonly reason: string;
  readonly event: { readonly session: string };
}

interface Group {
  readonly name: string;
  readonly instances: number;
  readonly deadLetters: number;
}

describe('the command, on events', () => {
  const partitions = 1;
  let server: RedisServer;
  let client: Redis;
  let app: EventInstance;
  let env: { REDIS_URL: string };
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    env = { REDIS_URL: server.url };
    app = await EventInstance.start({
      redis: { url: server.url, partitions, events: { group: 'mails', attempts: 1 } },
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ partitions })],
      providers: [Handlers],
    });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  async function endedSession(): Promise<string> {
    const session = app.module.get(IndexedSessionRepository, { strict: false }).createSession();
    session.setAttribute('cart', 'planted-value');
    await session.save();
    session.invalidate();
    await session.save();
    return session.id;
  }

  const letters = async () => (await jsonOf<{ deadLetters: Letter[] }>('dead-letters', env)).json.deadLetters;
  const groups = async () => (await jsonOf<{ groups: Group[] }>('groups', env)).json.groups;

  it('lists dead letters without data, and replays and discards them', async () => {
    const handlers = app.module.get(Handlers);
    const ids = [await endedSession(), await endedSession(), await endedSession()];
    const layout = new SessionPartitions('nest:session', partitions);
    await eventually(async () => {
      const counts = await Promise.all(layout.all.map(({ deadLetters }) => client.xlen(deadLetters)));
      expect(counts.reduce((sum, count) => sum + count)).toBe(3);
    });
    const found = await letters();
    expect(found.map(({ event }) => event.session).sort()).toEqual(ids.sort());
    const [first, second] = found;
    expect(first).toMatchObject({ group: 'mails', reason: expect.stringContaining('the mail server is down') });
    expect(JSON.stringify(found)).not.toContain('planted-value');
    expect((await runCommand('dead-letters --limit 1', env)).stdout.trim().split('\n')).toHaveLength(2);
    expect((await runCommand(`dead-letters --after ${second!.id}`, env)).stdout).not.toContain(second!.id);
    expect((await groups())[0]).toMatchObject({ name: 'mails', instances: 1, deadLetters: 3 });

    expect(await runCommand(`dead-letters --discard ${first!.id}`, env)).toMatchObject({ code: 1, stdout: '' });
    // They would seem to leave some of the dead letters alone.
    for (const line of [
      '--replay all --limit 1',
      '--discard all --yes --limit 1',
      `--discard all --yes --after ${first!.id}`,
    ]) {
      const { code, stdout, stderr } = await runCommand(`dead-letters ${line}`, env);
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^--limit and --after are for the list/)]);
    }
    expect(await letters()).toHaveLength(3);
    expect((await jsonOf(`dead-letters --discard ${first!.id} --yes`, env)).json).toEqual({ discarded: 1 });
    handlers.fails = false;
    expect((await jsonOf(`dead-letters --replay ${second!.id}`, env)).json).toEqual({ replayed: 1 });
    await eventually(() => expect(handlers.heard).toEqual([second!.event.session]));
    expect((await jsonOf('dead-letters --replay all --group others', env)).json).toEqual({ replayed: 0 });
    // Nobody can replay what was for a group that is gone.
    const [{ deadLetters } = { deadLetters: '' }] = layout.all;
    const [[, fields]] = (await client.xrange(deadLetters, '-', '+')) as [[string, string[]]];
    const orphan = await client.xadd(deadLetters, '*', ...fields.map((each) => (each === 'mails' ? 'gone' : each)));
    const { code, stdout } = await runCommand('dead-letters --replay all', env);
    expect([code, stdout]).toEqual([2, expect.stringMatching(/^1 dead letter replayed\.\n1 dead letter left: /)]);
    expect((await jsonOf('dead-letters --replay all', env)).json).toEqual({ replayed: 0, left: 1 });
    await client.xdel(deadLetters, orphan!);
    expect((await jsonOf('dead-letters --replay all', env)).json).toEqual({ replayed: 0 });
    expect(await runCommand('dead-letters', env)).toEqual({
      code: 0,
      stdout: 'There are no dead letters.\n',
      stderr: '',
    });
    for (const action of ['--replay', '--yes --discard']) {
      const { code, stderr } = await runCommand(`dead-letters ${action} ${first!.id}`, env);
      expect([code, stderr]).toEqual([1, `There is no dead letter "${first!.id}".\n`]);
    }
  });

  it('removes a group that nobody uses, and none with a living instance', async () => {
    for (const { events } of new SessionPartitions('nest:session', partitions).all) {
      await client.xgroup('CREATE', events, 'old', '$', 'MKSTREAM');
    }
    expect(await runCommand('groups --remove old', env)).toMatchObject({ code: 1, stdout: '' });
    expect((await groups()).map(({ name }) => name)).toEqual(['mails', 'old']);
    expect((await jsonOf('groups --remove old --yes', env)).json).toEqual({ removed: 'old' });
    const live = await runCommand('groups --remove mails --yes', env);
    expect(live).toMatchObject({ code: 1, stderr: expect.stringContaining('has instances that are alive') });
    expect((await groups()).map(({ name }) => name)).toEqual(['mails']);
    const unknown = await runCommand('groups --remove old --yes', env);
    expect(unknown).toEqual({ code: 1, stdout: '', stderr: 'There is no group "old".\n' });
  });

  it('watches events without becoming a group, and ends with Ctrl+C', async () => {
    const child = startCommand('watch --json', env);
    const stderr = text(child.stderr);
    const lines: string[] = [];
    createInterface(child.stdout).on('line', (line) => lines.push(line));
    const ids: string[] = [];
    // Until it reads, events pass it by.
    while (lines.length === 0) ids.push(await endedSession());
    const last = await endedSession();
    await eventually(() => expect(lines.at(-1)).toContain(last));
    const events = lines.map((line) => JSON.parse(line) as { type: string; session: string });
    const told = events.map(({ session }) => session);
    expect([...ids, last].slice(-told.length)).toEqual(told);
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['deleted']));
    expect((await groups()).map(({ name }) => name)).toEqual(['mails']);
    child.kill('SIGINT');
    await once(child, 'close');
    expect([child.exitCode, await stderr]).toEqual([0, 'Waiting for events. Press Ctrl+C to end.\n']);
  });

  it('ends when the pipe that it writes to is closed', async () => {
    const child = startCommand('watch', env);
    const stderr = text(child.stderr);
    const closed = once(child, 'close');
    await once(child.stderr, 'data');
    child.stdout.destroy();
    const ending = setInterval(() => void endedSession(), 100);
    await closed;
    clearInterval(ending);
    expect([child.exitCode, await stderr]).toEqual([0, expect.not.stringContaining('EPIPE')]);
  });

  // macOS has no such device.
  (existsSync('/dev/full') ? it : it.skip)('fails when its result cannot be written', () => {
    const [program, file] = [process.execPath, COMMAND];
    for (const line of ['groups --json', 'watch --version']) {
      const call = `exec "$0" "$1" ${line} > /dev/full`;
      const { status, stderr } = spawnSync('sh', ['-c', call, program, file], { env: { ...process.env, ...env } });
      expect([status, String(stderr)]).toEqual([
        1,
        expect.stringMatching(/^The result cannot be written: ENOSPC[^\n]*\n$/),
      ]);
    }
  });

  it('counts what there is, also in a namespace of deadlines', async () => {
    const deadlines = app.module.get(Deadlines, { strict: false });
    await deadlines.schedule(unpaid, 'order-1', { in: '1h', data: { card: 'planted-value' } });
    await deadlines.schedule(unpaid, 'order-2', { in: '1h', data: { card: 'planted-value' } });
    await deadlines.schedule(reminder, 'order-1', { in: '1h' });
    const session = app.module.get(IndexedSessionRepository, { strict: false }).createSession();
    session.signIn('ann');
    await session.save();
    const { json: sessions } = await jsonOf('stats', env);
    const common = { partitions, overdue: 0, instances: 1 };
    expect(sessions).toMatchObject({ ...common, namespace: 'nest:session', holds: 'sessions', sessions: 1 });
    const { json } = await jsonOf('stats --namespace nest:deadlines', env);
    const waiting = [
      { name: 'reminders', count: 1, overdue: 0 },
      { name: 'unpaid-orders', count: 2, overdue: 0 },
    ];
    expect(json).toMatchObject({ ...common, holds: 'deadlines', deadlines: waiting });
    const { code, stdout } = await runCommand('stats --namespace nest:deadlines', env);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/unpaid-orders +2/)]);
    const { stderr } = await runCommand('list --user ann --namespace nest:deadlines', env);
    expect(stderr).toBe('Namespace "nest:deadlines" holds deadlines, and this command is for sessions.\n');
    expect((await jsonOf('groups --namespace nest:deadlines', env)).json).toMatchObject({
      groups: [{ name: 'default' }],
    });
  });
});
