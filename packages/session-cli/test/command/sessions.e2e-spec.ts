import { Injectable } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionIdChangedEvent,
  Sessions,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { jsonOf, runCommand } from '../support/command.process.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';

LeakGuard.install();

@Injectable()
class Handlers {
  readonly ended: (string | undefined)[][] = [];

  @OnSessionEvent(SessionDeletedEvent)
  handle({ sessionId, reason }: SessionDeletedEvent) {
    this.ended.push([sessionId, reason]);
  }

  @OnSessionEvent(SessionCreatedEvent)
  hear() {}
}

@Injectable()
class FailingHandler {
  @OnSessionEvent(SessionIdChangedEvent)
  fail() {
    throw new Error('on purpose');
  }
}

interface Listed {
  readonly total: number;
  readonly sessions: readonly { readonly id: string; readonly creationTime: number; readonly timeToLive: number }[];
}

const SECRET = 'planted-value';

describe('the command, on sessions in several partitions', () => {
  const partitions = 4;
  let server: RedisServer;
  let client: Redis;
  let app: EventInstance;
  let env: { REDIS_URL: string };
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    env = { REDIS_URL: server.url };
    app = await EventInstance.start({ redis: { url: server.url, partitions }, providers: [Handlers] });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  const repository = () => app.module.get(IndexedSessionRepository, { strict: false });

  async function signIn(name: string): Promise<string> {
    const session = repository().createSession();
    session.setAttribute('cart', SECRET);
    session.signIn(name);
    await session.save();
    return session.id;
  }

  it('lists the sessions of a user, the latest sign-in first, in pages', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.unshift(await signIn('ann'));
      const signedIn = Date.now();
      await eventually(() => expect(Date.now()).toBeGreaterThan(signedIn));
    }
    await signIn('bob');
    const { code, json } = await jsonOf<Listed>('list --user ann', env);
    expect([code, json.total, json.sessions.map(({ id }) => id)]).toEqual([0, 3, ids]);
    const [first] = json.sessions;
    expect(first).toMatchObject({ maxInactiveInterval: 1800, authenticatedAt: expect.any(Number) });
    expect(first!.timeToLive).toBeGreaterThan(1_700_000);
    const page = await runCommand('list --user ann --limit 1 --skip 1', env);
    expect(page.stdout).toContain(ids[1]);
    expect(page.stdout).not.toContain(ids[0]);
    expect(page.stdout).toContain('1 more: add --skip 2');
    expect(await runCommand('list --user nobody', env)).toMatchObject({
      code: 0,
      stdout: 'There are no live sessions.\n',
    });
    const behind = await runCommand('list --user ann --skip 3', env);
    expect(behind.stdout).toBe('There are no live sessions on this page.\n');
    expect(await runCommand('list --user ann --limit 0', env)).toMatchObject({ code: 1, stdout: '' });
  });

  it('leaves out sessions that an epoch has ended, and ids that are left in the index', async () => {
    const [id, gone] = [await signIn('eve'), await signIn('eve')];
    const layout = new SessionPartitions('nest:session', partitions);
    const keys = layout.of(gone);
    await client.del(keys.session(gone), keys.shadow(gone));
    const listed = async () => (await jsonOf<Listed>('list --user eve', env)).json.sessions.map((each) => each.id);
    expect(await listed()).toEqual([id]);
    // It removes nothing: that is for the application.
    const index = keys.index('principal', hashOfValue('eve'));
    expect(await client.zscore(index, gone)).not.toBeNull();
    await client.zadd(index, Date.now() + 60_000, gone);
    const first = await runCommand('list --user eve --limit 1', env);
    expect(first.stdout).toBe('There are no live sessions on this page.\n1 more: add --skip 1\n');
    const epoch = layout.of(id).epoch;
    await client.hset(epoch, 'at', Date.now() + 60_000, 'ended', Date.now() + 60_000);
    expect(await listed()).toEqual([]);
    expect((await jsonOf(`show ${id}`, env)).json).toMatchObject({ live: false });
    expect((await runCommand(['show', id], env)).stdout).toMatch(/state +ended: nobody has recorded the end yet/);
    await client.del(epoch);
  });

  it('lists no session that has another user by the time it is read', async () => {
    const [id, other] = [await signIn('gil'), await signIn('hal')];
    const keys = new SessionPartitions('nest:session', partitions).of(other);
    // As the index was before the session got another user.
    await client.zadd(keys.index('principal', hashOfValue('gil')), Date.now(), other);
    const { json } = await jsonOf<Listed>('list --user gil', env);
    expect(json.sessions.map((each) => each.id)).toEqual([id]);
  });

  it('shows one session with names and sizes, and no value', async () => {
    const session = repository().createSession();
    session.setAttribute('cart', SECRET);
    // Three bytes a character.
    session.setAttribute('名', '中中');
    session.signIn('carol');
    await session.save();
    const { id } = session;
    const { code, json } = await jsonOf<{ attributes: { name: string; bytes: number }[] }>(`show ${id}`, env);
    expect([code, json]).toEqual([0, expect.objectContaining({ id, live: true, maxInactiveInterval: 1800 })]);
    expect(json.attributes).toEqual([
      { name: 'cart', bytes: JSON.stringify(SECRET).length },
      { name: 'nest-session.principal', bytes: '"carol"'.length },
      { name: '名', bytes: Buffer.byteLength('"中中"') },
    ]);
    const { stdout } = await runCommand(['show', id], env);
    expect(stdout).toMatch(/state +live/);
    for (const text of [stdout, JSON.stringify(json)]) {
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain('carol');
    }
  });

  it('shows where a session has its later id, and how one has ended', async () => {
    const [id, rotated] = [await signIn('dan'), await signIn('dan')];
    const session = (await repository().findById(rotated))!;
    session.changeSessionId();
    await session.save();
    expect((await jsonOf(`show ${rotated}`, env)).json).toEqual({ id: rotated, forwardedTo: session.id });
    await app.module.get(Sessions, { strict: false }).end(id);
    expect((await jsonOf(`show ${id}`, env)).json).toMatchObject({ live: false, ended: 'deleted' });
  });

  it('ends one session as Sessions.end() does, also one whose id begins with a hyphen', async () => {
    const handlers = app.module.get(Handlers);
    handlers.ended.length = 0;
    let id = await signIn('frank');
    while (!id.startsWith('-')) id = await signIn('frank');
    const key = new SessionPartitions('nest:session', partitions).of(id).session(id);
    const accessed = (await client.hget(key, 'lastAccessedTime'))!;
    await client.hdel(key, 'lastAccessedTime');
    expect((await runCommand(['show', id], env)).stdout).toMatch(/^state +unreadable: no request finds it/m);
    await client.hset(key, 'lastAccessedTime', accessed);
    expect(await runCommand(['end', id], env)).toEqual({ code: 0, stdout: `Session ${id} has ended.\n`, stderr: '' });
    await eventually(() => expect(handlers.ended).toEqual([[id, 'revoked']]));
    expect(await repository().findById(id)).toBeNull();
    expect(await runCommand(['end', id], env)).toEqual({ code: 1, stdout: '', stderr: `There is no session ${id}.\n` });
  });

  it('ends all sessions of a user only with --yes, as Sessions.endAll() does', async () => {
    const handlers = app.module.get(Handlers);
    handlers.ended.length = 0;
    const ids = [await signIn('grace'), await signIn('grace')];
    const other = await signIn('heidi');
    const refused = await runCommand('end --user grace', env);
    expect(refused).toEqual({
      code: 1,
      stdout: '',
      stderr: 'The user has 2 sessions. Add --yes to end all of them.\n',
    });
    expect(await repository().findByPrincipalName('grace')).toHaveLength(2);
    const monitor = await client.monitor();
    const written: string[] = [];
    monitor.on('monitor', (_time: string, [name = '', key = '', ...others]: string[], source: string) => {
      if (source === 'lua') written.push([name.toLowerCase(), key, ...others].join(' '));
    });
    expect((await jsonOf('end --user grace --yes', env)).json).toEqual({ ended: 2 });
    // A takeover that comes in between would leave a session behind.
    const shadows = ids.map((id) => new SessionPartitions('nest:session', partitions).of(id).shadow(id));
    const isEnd = (line: string) => shadows.some((shadow) => line.includes(shadow)) && /^(del|unlink) /.test(line);
    await eventually(() => expect(written.some(isEnd)).toBe(true));
    monitor.disconnect();
    const [lastNote, firstEnd] = [
      written.findLastIndex((line) => line.includes(':revoked:')),
      written.findIndex(isEnd),
    ];
    expect(lastNote).toBeGreaterThanOrEqual(0);
    expect(firstEnd).toBeGreaterThan(lastNote);
    await eventually(() => expect(new Set(handlers.ended)).toEqual(new Set(ids.map((id) => [id, 'revoked']))));
    expect(await repository().findById(other)).not.toBeNull();
    // Nor does a later request bring one back from connect-redis.
    expect((await client.keys('nest:session:*revoked:*')).length).toBe(partitions);
    // One needs no --yes.
    expect((await jsonOf('end --user heidi', env)).json).toEqual({ ended: 1 });
  });

  it('lists and ends the sessions of a user whose name is too long to stand in an index', async () => {
    const name = `${'x'.repeat(257)}@example.org`;
    const id = await signIn(name);
    const { json } = await jsonOf<Listed>(`list --user ${name}`, env);
    expect([json.total, json.sessions.map((each) => each.id)]).toEqual([1, [id]]);
    expect((await jsonOf(`end --user ${name}`, env)).json).toEqual({ ended: 1 });
    expect(await repository().findById(id)).toBeNull();
  });

  it('ends every session that began until a time, as Sessions.endEverySession() does', async () => {
    const handlers = app.module.get(Handlers);
    handlers.ended.length = 0;
    const [old, again] = [await signIn('judy'), await signIn('kim')];
    const [seconds] = await client.time();
    const at = (Number(seconds) + 1) * 1000;
    await eventually(async () => expect(Number((await client.time())[0])).toBeGreaterThan(at / 1000));
    const session = (await repository().findById(again))!;
    session.signIn('kim');
    await session.save();
    const late = await signIn('leo');
    const time = new Date(at).toISOString();
    const { code, json } = await jsonOf(`end --begun-before ${time} --yes`, env);
    expect([code, json]).toEqual([0, { begunBefore: at, recordedBy: 'instances' }]);
    await eventually(() => expect(handlers.ended).toContainEqual([old, 'everybody']));
    const living = await repository().findByIds([old, session.id, late]);
    expect(living.map((each) => each?.id)).toEqual([undefined, session.id, late]);
    // Created before that time, and signed in to later.
    expect((await jsonOf(`show ${session.id}`, env)).json).toMatchObject({ live: true });
    expect((await jsonOf<Listed>('list --user kim', env)).json.sessions.map((each) => each.id)).toEqual([session.id]);
    // It says the time in effect.
    const { stdout } = await runCommand('end --begun-before 2026-01-01T00:00Z --yes', env);
    expect(stdout.split('\n')).toEqual([
      `Every session that was created and signed in to until ${time.replace('.000', '')} is over.`,
      expect.stringMatching(
        /^Running instances .* record their ends\. If none runs, the first one that starts does\.$/,
      ),
      '',
    ]);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const future = await runCommand(`end --begun-before ${tomorrow} --yes`, env);
    expect([future.code, future.stdout]).toEqual([1, '']);
    expect(future.stderr).toContain(`--begun-before is ${tomorrow}, but the clock of Redis says `);
    expect((await repository().findById(late))?.id).toBe(late);
  });

  it('keeps the data of an ended session for --retention', async () => {
    const id = await signIn('ivan');
    const keys = new SessionPartitions('nest:session', partitions).of(id);
    // Nobody trims it meanwhile.
    await runCommand(['end', id, '--retention', '7d'], env);
    expect(await client.pttl(keys.session(id))).toBeGreaterThan(6 * 86_400_000);
    const short = await signIn('ivan');
    // That of an application with a short grace period.
    await runCommand(['end', short, '--retention', '30s'], env);
    const kept = await client.pttl(new SessionPartitions('nest:session', partitions).of(short).session(short));
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThanOrEqual(30_000);
    const { code, stderr } = await runCommand(['end', id, '--retention', '7'], env);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^--retention is the bare number "7"/)]);
  });

  it.each([
    ['show', 'show needs <id>.'],
    ['show a b', 'Unexpected argument "b".'],
    ['end', 'end needs one of <id>, --user <name> and --begun-before <time>.'],
    ['end x --user ann', 'end needs one of <id>, --user <name> and --begun-before <time>.'],
    ['end x --begun-before now --yes', 'end needs one of <id>, --user <name> and --begun-before <time>.'],
    ['end --user ann --begun-before now', 'end needs one of <id>, --user <name> and --begun-before <time>.'],
    [
      'end --begun-before now',
      'This ends every session that was created and signed in to until now. Add --yes to do that.',
    ],
    [
      'end --begun-before 2026-01-01T02:00+02:00',
      'This ends every session that was created and signed in to until 2026-01-01T00:00:00Z. Add --yes to do that.',
    ],
    ['show ../../meta', 'There is no session "../../meta".'],
    ['show expires:x', 'There is no session "expires:x".'],
    ['list', 'list needs the option --user.'],
    ...[
      '1764158400000',
      '2026-01-01',
      '2026-01-01T00:00:00',
      '2026-02-30T00:00Z',
      '1970-01-01T00:00Z',
      'yesterday',
    ].map((time) => [
      `end --begun-before ${time} --yes`,
      `--begun-before must be now, or a time with its zone such as 2026-11-26T12:00:00Z, but is "${time}". See nest-session --help`,
    ]),
  ])('refuses `%s`', async (line, problem) => {
    const { code, stdout, stderr } = await runCommand(line, env);
    expect([code, stdout, stderr.split('\n')[0]]).toEqual([1, '', problem]);
  });
});

describe('the command, where session ids are tokens', () => {
  it('prints fingerprints, and ends by the whole id', async () => {
    const server = await RedisServer.start();
    const env = { REDIS_URL: server.url };
    const redis = { url: server.url, expirations: 'sorted-set' } as const;
    const app = await EventInstance.start({
      redis: { ...redis, events: { attempts: 1 } },
      session: { sessionIds: 'plain' },
      providers: [Handlers, FailingHandler],
    });
    try {
      const repository = app.module.get(IndexedSessionRepository, { strict: false });
      const session = repository.createSession();
      session.signIn('ann');
      await session.save();
      const former = session.id;
      session.changeSessionId();
      await session.save();
      const { id } = session;
      const letters = await eventually(async () => {
        const { json } = await jsonOf<{ deadLetters: { event: object }[] }>('dead-letters', env);
        expect(json.deadLetters).toHaveLength(1);
        return json.deadLetters;
      });
      const shown = expect.stringMatching(/^sha256:/) as string;
      expect(letters).toMatchObject([{ event: { type: 'id-changed', session: shown, previous: shown } }]);
      const outputs = [
        await runCommand('dead-letters', env),
        await runCommand(['show', former], env),
        await runCommand('list --user ann', env),
        await runCommand('list --user ann --json', env),
        await runCommand(['show', id], env),
        await runCommand(['show', id, '--json'], env),
        await runCommand(['show', id.slice(1)], env),
        await runCommand(['end', id], env),
        await runCommand(['end', id], env),
        await runCommand('stats', env),
        await runCommand('dead-letters --json', env),
      ];
      const told = outputs.map(({ stdout, stderr }) => stdout + stderr).join('');
      for (const token of [id, former]) expect(told + JSON.stringify(letters)).not.toContain(token.slice(1, 20));
      const [fingerprint, ...others] = told.match(/sha256:[\w-]{16}/g)!;
      expect(others.length).toBeGreaterThan(4);
      expect(await runCommand(['show', fingerprint!], env)).toMatchObject({
        stderr: `"${fingerprint}" is the fingerprint of a session id, and does not lead to it: give the whole id.\n`,
      });
      expect(await repository.findById(id)).toBeNull();
    } finally {
      await app.stop();
      await server.stop();
    }
  });
});
