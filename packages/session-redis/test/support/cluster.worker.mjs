// An instance that reads, writes, rotates, ends and creates sessions on a Cluster, in a process of its own. It writes a
// journal: before each write what may be stored after it, then what is. It runs the built packages.
import { openSync, readFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { SessionPartitions } from '../../dist/keys/session-partitions.js';

const { NODES, GROUP, SLOTS, JOURNAL } = process.env;
const partitions = new SessionPartitions('nest:session', 64);
const SLOTS_AT_ONCE = 32;
// Each has the sessions of its own partitions: it waits for one node, and the others do not.
const LOOPS = 16;
// Milliseconds.
const LONG = 20;

const journal = openSync(JOURNAL, 'a');
/** At once: this process may be killed. */
const note = (...record) => writeSync(journal, `${JSON.stringify(record)}\n`);

class Handlers {
  handle({ type, sessionId, session, dataLost }) {
    if (type !== 'deleted' && type !== 'expired') return;
    note('event', type, sessionId, session.getAttribute('n') ?? null, dataLost, Date.now());
  }
}
const handle = Object.getOwnPropertyDescriptor(Handlers.prototype, 'handle');
OnSessionEvent(SessionEvent)(Handlers.prototype, 'handle', handle);

class WorkerModule {}
Module({
  imports: [
    SessionModule.forRoot({ timeout: '1h' }),
    RedisSessionModule.forRoot({
      cluster: { nodes: JSON.parse(NODES) },
      commandTimeout: '1s',
      cleanup: { cron: '*/5 * * * * *' },
      events: { group: GROUP },
    }),
  ],
  providers: [Handlers],
})(WorkerModule);

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error'] });
const repository = app.get(IndexedSessionRepository, { strict: false });

/**
 * Each slot is the place of one session. `versions`: what may be stored of it, one version unless the outcome of a
 * write is unknown. A version is `{ id, n, principal }`, with `ended: true` when the session has ended.
 */
const slots = JSON.parse(readFileSync(SLOTS, 'utf8'));
const partitionOf = ({ versions }) => partitions.all.indexOf(partitions.of(versions[0].id));

const held = new Set();
const busy = new Map();
let calls = 0;
const untilCalled = new Set();
let isPaused = true;

function stored(slot, versions) {
  slot.versions = versions;
  note('slot', slot.name, versions);
}

/** A call to the store, of a partition; -1: of all. Notes those that take long, and those that fail. */
async function timed(partition, call) {
  const began = Date.now();
  const clock = performance.now();
  const noted = (error) => note('call', began, performance.now() - clock, partition, error);
  try {
    const value = await call();
    if (performance.now() - clock > LONG) noted(null);
    return value;
  } catch (error) {
    noted(error.message);
    throw error;
  } finally {
    calls++;
    for (const waiting of untilCalled) waiting();
  }
}

/** `write` makes the only version of a slot this one. When it fails, both may be stored. */
async function change(slot, after, write) {
  const [before] = slot.versions;
  stored(slot, [before, after]);
  const outcome = await timed(slot.partition, write);
  if (outcome !== undefined && outcome !== 'saved' && outcome !== true) problem(`the outcome is ${outcome}`, slot);
  stored(slot, [after]);
  if (after.ended) await replace(slot);
}

function problem(what, slot) {
  note('problem', what, slot);
}

async function load(slot) {
  const [{ id, n, principal }] = slot.versions;
  const session = await timed(slot.partition, () => repository.findById(id));
  if (!session) problem('not found', slot);
  else if (session.getAttribute('n') !== n) problem(`has ${session.getAttribute('n')}`, slot);
  else if ((session.principalName ?? null) !== principal) problem(`is of ${session.principalName}`, slot);
  return session ?? undefined;
}

/** A new session, in the partition of the slot, which is in the place of one that has ended. */
async function replace(slot) {
  let session;
  do session = repository.createSession();
  while (partitions.all.indexOf(partitions.of(session.id)) !== slot.partition);
  session.setAttribute('n', 0);
  const [before] = slot.versions;
  const after = { id: session.id, n: 0, principal: null };
  stored(slot, [before, after]);
  await timed(slot.partition, () => session.save());
  if (before.ended) note('end', 'deleted', before.id, before.n);
  stored(slot, [after]);
}

const ACTIONS = [
  [30, load],
  [
    24,
    async (slot, session) => {
      const [version] = slot.versions;
      session.setAttribute('n', version.n + 1);
      await change(slot, { ...version, n: version.n + 1 }, () => session.save());
    },
  ],
  [
    12,
    async (slot, session) => {
      const [version] = slot.versions;
      const update = () => session.updateAttribute('n', (n) => n + 1);
      await change(slot, { ...version, n: version.n + 1 }, async () => void (await update()));
    },
  ],
  [
    8,
    async (slot, session) => {
      const id = session.changeSessionId();
      await change(slot, { ...slot.versions[0], id }, () => session.save());
    },
  ],
  [
    8,
    async (slot, session) => {
      const principal = `user ${session.id.slice(0, 12)}`;
      session.signIn(principal);
      await change(slot, { ...slot.versions[0], id: session.id, principal }, () => session.save());
    },
  ],
  // The save of a request that began before another one rotated the session.
  [
    4,
    async (slot, late) => {
      const session = await load(slot);
      if (!session) return;
      const id = session.changeSessionId();
      await change(slot, { ...slot.versions[0], id }, () => session.save());
      const [version] = slot.versions;
      late.setAttribute('n', version.n + 1);
      await change(slot, { ...version, n: version.n + 1 }, () => late.save());
    },
  ],
  [
    4,
    async (slot, session) => {
      session.invalidate();
      await change(slot, { ...slot.versions[0], ended: true }, () => session.save());
    },
  ],
  [
    6,
    async (slot) => {
      let session;
      do session = repository.createSession();
      while (partitions.all.indexOf(partitions.of(session.id)) !== slot.partition);
      session.setAttribute('n', 7);
      session.maxInactiveInterval = 1 + Math.floor(Math.random() * 15);
      // It may be stored, and end.
      note('maybe', 'expired', session.id, 7);
      await timed(slot.partition, () => session.save());
      note('end', 'expired', session.id, 7);
    },
  ],
  [
    1,
    async (slot) => {
      const [{ id, principal }] = slot.versions;
      if (principal === null) return;
      const found = await timed(-1, () => repository.findByPrincipalName(principal));
      if (found.length !== 1 || found[0].id !== id) problem(`${found.length} of its principal`, slot);
    },
  ],
];
const WEIGHTS = ACTIONS.reduce((sum, [weight]) => sum + weight, 0);

function anyAction() {
  let left = Math.random() * WEIGHTS;
  return ACTIONS.find(([weight]) => (left -= weight) < 0)[1];
}

async function act(slot) {
  const action = anyAction();
  try {
    const session = await load(slot);
    if (session && action !== load) await action(slot, session);
  } catch {
    // Noted with the call. Until it is settled, nobody knows the outcome.
  }
}

async function loop(first) {
  const own = slots.filter(({ partition }) => Math.floor((partition * LOOPS) / 64) === first);
  for (;;) {
    const slot = own[Math.floor(Math.random() * own.length)];
    if (slot !== undefined && !isPaused && slot.versions.length === 1 && !held.has(slot.partition)) {
      const acting = act(slot);
      busy.set(slot, acting);
      await acting;
      busy.delete(slot);
    }
    await pause(1);
  }
}

/** Finds out which of the versions of a slot is stored. */
async function settle(slot) {
  const [before, after] = slot.versions;
  const found = [];
  for (const id of new Set([before.id, after.id])) {
    const session = await patiently(() => repository.findById(id));
    if (session) found.push({ id, n: session.getAttribute('n'), principal: session.principalName ?? null });
  }
  const same = (one) => (other) => JSON.stringify(one) === JSON.stringify(other);
  const isEnded = (version) => version.ended === true;
  const actual = found.length === 0 ? slot.versions.find(isEnded) : slot.versions.find(same(found[0]));
  if (found.length > 1 || !actual) return problem(`is ${JSON.stringify(found)}`, slot);
  stored(slot, [actual]);
  if (!actual.ended && before.ended) note('end', 'deleted', before.id, before.n);
  while (slot.versions[0].ended) await patiently(() => replace(slot));
}

async function patiently(call) {
  for (;;) {
    try {
      return await call();
    } catch {
      await pause(50);
    }
  }
}

async function inTurns(list, task) {
  const left = [...list];
  const lane = async () => {
    for (let each = left.shift(); each !== undefined; each = left.shift()) await task(each);
  };
  await Promise.all(Array.from({ length: SLOTS_AT_ONCE }, lane));
}

const COMMANDS = {
  /** Creates the sessions that are missing. */
  async create() {
    await inTurns(
      slots.filter(({ versions }) => versions === undefined),
      async (slot) => {
        const session = repository.createSession();
        session.setAttribute('n', 0);
        slot.partition = partitions.all.indexOf(partitions.of(session.id));
        await session.save();
        stored(slot, [{ id: session.id, n: 0, principal: null }]);
      },
    );
    for (let i = 0; i < LOOPS; i++) void loop(i);
  },
  async resume() {
    isPaused = false;
  },
  /** Until so many more calls have ended. */
  async load(count) {
    const end = calls + count;
    await new Promise((resolve) => {
      const look = () => {
        if (calls < end) return;
        untilCalled.delete(look);
        resolve();
      };
      untilCalled.add(look);
    });
  },
  /** Leaves some partitions alone. */
  async hold(numbers) {
    for (const number of numbers) held.add(number);
    await Promise.all([...busy].map(([slot, acting]) => held.has(slot.partition) && acting));
  },
  async release() {
    held.clear();
  },
  async settle() {
    isPaused = true;
    await Promise.all(busy.values());
    const unsettled = slots.filter(({ versions }) => versions.length > 1 || versions[0].ended);
    note('calls', calls, unsettled.length);
    await inTurns(unsettled, (slot) => (slot.versions.length > 1 ? settle(slot) : patiently(() => replace(slot))));
  },
};

// Those of an instance that was killed.
for (const slot of slots.filter(({ versions }) => versions !== undefined)) {
  slot.partition = partitionOf(slot);
  stored(slot, slot.versions);
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const [number, command, argument] = JSON.parse(line);
  void COMMANDS[command](argument).then(() => process.stdout.write(`done ${number}\n`));
});
process.stdout.write('ready\n');
