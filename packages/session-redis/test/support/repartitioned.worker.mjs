// An instance that reads, writes, rotates, ends and creates sessions while they move to other partitions, in a process of
// its own. It knows what each session must hold, and prints what differs. It runs the built packages.
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

const { REDIS_URL, IDS, RESULT, PARTITIONS, LOOPS } = process.env;
const COMMAND_TIMEOUT = 1000;

const events = [];
class Handlers {
  handle({ type, sessionId, session, dataLost }) {
    if (type === 'deleted' || type === 'expired') events.push([type, sessionId, session.getAttribute('n'), dataLost]);
  }
}
const handle = Object.getOwnPropertyDescriptor(Handlers.prototype, 'handle');
OnSessionEvent(SessionEvent)(Handlers.prototype, 'handle', handle);

class WorkerModule {}
Module({
  imports: [
    SessionModule.forRoot({ timeout: '1h' }),
    RedisSessionModule.forRoot({
      url: REDIS_URL,
      partitions: JSON.parse(PARTITIONS),
      cleanup: { cron: '*/5 * * * * *' },
      commandTimeout: `${COMMAND_TIMEOUT}ms`,
    }),
  ],
  providers: [Handlers],
})(WorkerModule);

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error'] });
const repository = app.get(IndexedSessionRepository, { strict: false });

/** What must be in Redis: of each session its id, the last number saved, and its principal. */
const slots = readFileSync(IDS, 'utf8')
  .split('\n')
  .map((id) => ({ id, n: 0 }));
/** The ends that must be reported, with the number that the session had. */
const ends = [];
const problems = [];
const times = [];
let isStopping = false;

async function timed(call) {
  const began = performance.now();
  try {
    return await call();
  } finally {
    times.push(performance.now() - began);
  }
}

function check(isRight, what, slot) {
  if (!isRight) problems.push(`${what}: ${JSON.stringify(slot)}`);
}

async function load(slot) {
  const session = await timed(() => repository.findById(slot.id));
  check(session !== null, 'not found', slot);
  if (session) check(session.getAttribute('n') === slot.n, `has ${session.getAttribute('n')}`, slot);
  return session;
}

async function save(session, slot, n = slot.n + 1) {
  session.setAttribute('n', n);
  const outcome = await timed(() => session.save());
  check(outcome === 'saved', `save is ${outcome}`, slot);
  slot.n = n;
  slot.id = session.id;
}

async function created(change = () => undefined) {
  const session = repository.createSession();
  session.setAttribute('n', 0);
  change(session);
  await timed(() => session.save());
  return { id: session.id, n: 0, principal: session.principalName };
}

const ACTIONS = [
  [40, load],
  [24, async (slot) => save(await load(slot), slot)],
  [
    6,
    async (slot) => check((await timed(async () => repository.touch(await load(slot)))) === 'touched', 'touch', slot),
  ],
  [
    8,
    async (slot) => {
      const session = await load(slot);
      session.changeSessionId();
      await save(session, slot);
    },
  ],
  [
    5,
    async (slot) => {
      const session = await load(slot);
      slot.principal = `user ${slot.id.slice(0, 12)}`;
      session.signIn(slot.principal);
      await save(session, slot);
    },
  ],
  [
    5,
    async (slot) => {
      if (slot.principal === undefined) return;
      const found = await timed(() => repository.findByPrincipalName(slot.principal));
      check(found.length === 1 && found[0].id === slot.id, `${found.length} of its principal`, slot);
    },
  ],
  // A save that is late: another request has rotated the session.
  [
    4,
    async (slot) => {
      const [late, session] = [await load(slot), await load(slot)];
      session.changeSessionId();
      await save(session, slot, slot.n);
      late.setAttribute('n', slot.n + 1);
      await timed(() => late.save());
      slot.n++;
      await load(slot);
    },
  ],
  [
    3,
    async (slot) => {
      const session = await load(slot);
      session.invalidate();
      await timed(() => session.save());
      ends.push(['deleted', slot.id, slot.n]);
      Object.assign(slot, { principal: undefined }, await created());
    },
  ],
  [
    3,
    async () => {
      const { id, n } = await created((session) => (session.maxInactiveInterval = 1 + Math.floor(Math.random() * 20)));
      ends.push(['expired', id, n]);
    },
  ],
  [2, async () => void slots.push(await created())],
];
const WEIGHTS = ACTIONS.reduce((sum, [weight]) => sum + weight, 0);

function anyAction() {
  let left = Math.random() * WEIGHTS;
  return ACTIONS.find(([weight]) => (left -= weight) < 0)[1];
}

async function loop(first) {
  while (!isStopping) {
    // Each loop has its own sessions.
    const own = Math.floor(Math.random() * Math.floor((slots.length - first - 1) / LOOPS)) * LOOPS + first;
    const slot = slots[own];
    try {
      await anyAction()(slot);
    } catch (error) {
      problems.push(`${String(error)}: ${JSON.stringify(slot)}`);
    }
    await pause(1);
  }
}

const loops = Array.from({ length: Number(LOOPS) }, (_, i) => loop(i));
async function obey(line) {
  if (line === 'stop') {
    isStopping = true;
    await Promise.all(loops);
    process.stdout.write('stopped\n');
  } else {
    writeFileSync(RESULT, JSON.stringify({ slots, ends, events, problems, times }));
    process.stdout.write('written\n');
  }
}
createInterface({ input: process.stdin }).on('line', (line) => void obey(line));
process.stdout.write('ready\n');
