// Lets instances make random calls of the same sessions at the same time, and records when each call began, when its
// answer came and what it said. The answer of a call that failed is unknown: it may have taken effect, or still will.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const INSTANCES = 3;
const CALLS_AT_ONCE = 4; // of each instance
const SESSIONS_AT_ONCE = 8;
// Every call without an answer stays open to the end, and makes the checker try twice as much.
const MOST_UNKNOWN = 4;
const MOST_CALLS = 120;
const CALLS_AFTER_END = 6;
const NAMES = ['ann', 'bob', 'cid'];
const SHORT_TIMEOUT = 1; // seconds

/** Microseconds since the process began. */
const now = () => Math.round(performance.now() * 1000);
const oneOf = (list) => list[Math.floor(Math.random() * list.length)];

/** Records until `stop()` is called. */
export class Recorder {
  /** The calls of all sessions, as check.go reads them. */
  calls = [];
  /** The ends that handlers heard of. */
  events = [];
  #redisOptions;
  #instances = [];
  #sessions = [];
  #isOver = false;
  #number = 0;

  static async start(redisOptions) {
    const recorder = new Recorder();
    recorder.#redisOptions = JSON.stringify(redisOptions);
    recorder.#instances = await Promise.all(Array.from({ length: INSTANCES }, () => recorder.#launch()));
    recorder.loops = recorder.#instances.flatMap((_, i) =>
      Array.from({ length: CALLS_AT_ONCE }, () => recorder.#callInTurn(i)),
    );
    return recorder;
  }

  /** Kills an instance, and starts another one. */
  async replaceInstance() {
    const i = Math.floor(Math.random() * INSTANCES);
    const { child } = this.#instances[i];
    child.kill('SIGKILL');
    this.#instances[i] = await this.#launch();
  }

  /** Ends the calls, then asks for each session once more, and waits until handlers have heard of all ends. */
  async stop() {
    this.#isOver = true;
    await Promise.all(this.loops);
    for (const session of this.#sessions) session.isDead = !session.hasUnknownId && !(await this.#lives(session));
    await this.#untilHeard();
    for (const { child } of this.#instances) child.disconnect();
    await Promise.all(this.#instances.map(({ exit }) => exit));
    this.#addLists();
    this.#addEnds();
  }

  /** What is wrong with the events: a text for each session. */
  eventProblems({ isAtLeastOnce }) {
    return this.#sessions.flatMap((session) => {
      const heard = this.events.filter(({ sessionId }) => session.ids.includes(sessionId));
      const times = new Set(heard.map(({ id }) => id)).size;
      if (session.isDead && times === 0) return `${session.name}: its end was not heard`;
      // One with a short timeout may end while the others are waited for.
      if (!session.isDead && times > 0 && !session.hasUnknownId && session.timeout === 0)
        return `${session.name}: it lives, and an end was heard`;
      if (times > 1) return `${session.name}: ${times} ends were recorded`;
      return heard.length > 1 && !isAtLeastOnce ? `${session.name}: its end was heard ${heard.length} times` : [];
    });
  }

  get sessionCount() {
    return this.#sessions.length;
  }

  async #launch() {
    const child = fork(WORKER, [], { env: { ...process.env, REDIS_OPTIONS: this.#redisOptions } });
    const instance = { child, exit: once(child, 'exit'), copies: [], waiting: new Map() };
    const isReady = new Promise((resolve, reject) => {
      void instance.exit.then(() => reject(new Error('An instance has ended')));
      child.on('message', (message) => {
        if (message.isReady) resolve();
        if (message.event) this.events.push({ ...message.event, heardAt: now() });
        instance.waiting.get(message.number)?.(message.output);
        instance.waiting.delete(message.number);
      });
    });
    void instance.exit.then(() => {
      for (const answer of instance.waiting.values()) answer({ isUnknown: true });
    });
    await isReady;
    return instance;
  }

  async #callInTurn(i) {
    while (!this.#isOver) {
      const instance = this.#instances[i];
      if (instance.child.exitCode !== null || instance.child.signalCode !== null) await sleep(10);
      else await this.#callAnything(instance);
    }
  }

  async #callAnything(instance) {
    const session = this.#anySession();
    if (!session) return this.#create(instance);
    session.calls++;
    const copy = oneOf(instance.copies.filter((each) => each.session === session && !each.isBusy));
    if (!copy || Math.random() < 0.3) return this.#load(instance, session);
    copy.isBusy = true;
    const [call, input] = this.#anyChange(session);
    const output = await this.#call(instance, session, call, { copy: copy.number, id: copy.id, ...input });
    copy.isBusy = false;
    // Of a sign-in without an answer, nobody knows whether this is the id of a session of its own.
    if (output.id && !(call === 'signIn' && output.isUnknown)) session.ids.push(output.id);
    if (output.outcome === 'saved' && output.id) copy.id = output.id;
    if (output.outcome === 'saved' && call === 'end') session.isEnded = true;
    if (output.outcome !== 'saved' || call === 'end') instance.copies.splice(instance.copies.indexOf(copy), 1);
    if (call === 'signIn' && Math.random() < 0.3) await this.#askForName(instance, input.name);
  }

  #anySession() {
    const open = this.#sessions.slice(-SESSIONS_AT_ONCE * 2).filter((session) => {
      if (session.isEnded && ++session.callsAfterEnd > CALLS_AFTER_END) return false;
      return session.calls < MOST_CALLS && session.unknown < MOST_UNKNOWN;
    });
    return open.length < SESSIONS_AT_ONCE ? undefined : oneOf(open);
  }

  async #create(instance) {
    const timeout = Math.random() < 0.3 ? SHORT_TIMEOUT : 0;
    const number = ++this.#number;
    const session = { name: `s${number}`, timeout, ids: [], calls: 0, callsAfterEnd: 0, unknown: 0, names: new Set() };
    const output = await this.#call(instance, session, 'create', { copy: number, timeout });
    // Nobody knows what was created.
    if (output.outcome !== 'saved') return;
    session.ids.push(output.id);
    this.#sessions.push(session);
    instance.copies.push({ number, session, id: output.id });
  }

  async #load(instance, session) {
    const number = ++this.#number;
    const id = Math.random() < 0.9 ? session.ids.at(-1) : oneOf(session.ids);
    const { found } = await this.#call(instance, session, 'load', { copy: number, id });
    if (found) instance.copies.push({ number, session, id });
    else if (found === false && id === session.ids.at(-1)) session.isEnded = true;
  }

  #anyChange(session) {
    const chance = Math.random();
    if (chance < 0.35) return ['set', { value: `v${++this.#number}` }];
    if (chance < 0.75) return ['add', {}];
    if (chance < 0.87) return ['rotate', {}];
    // A sign-in sets the timeouts of a signed-in user.
    if (chance < 0.97 && session.timeout === 0) {
      const name = oneOf(NAMES);
      session.names.add(name);
      return ['signIn', { name }];
    }
    return ['end', {}];
  }

  /** A look-up, or an end of all sessions, asks about each session that ever had the name. */
  async #askForName(instance, name) {
    const call = Math.random() < 0.8 ? 'list' : 'endAll';
    const begin = now();
    const output = await this.#ask(instance, call, { name });
    const end = output.isUnknown ? 0 : now();
    if (call === 'list' && output.isUnknown) return;
    this.#named.push({ call, begin, end, name, ids: output.ids });
  }

  #named = [];

  #addLists() {
    for (const { call, begin, end, name, ids } of this.#named) {
      for (const session of this.#sessions.filter(({ names }) => names.has(name))) {
        const id = ids?.find((each) => session.ids.includes(each));
        const output = call === 'list' ? { found: id !== undefined, id } : {};
        if (call === 'list' && session.hasUnknownId) continue;
        this.#record(session, call, begin, end, { name }, output);
      }
    }
  }

  #addEnds() {
    for (const event of this.events) {
      const session = this.#sessions.find(({ ids }) => ids.includes(event.sessionId));
      const { a, n, principal, heardAt } = event;
      if (session) this.#record(session, 'ended', 0, heardAt, {}, { a, n, principal });
    }
  }

  async #call(instance, session, call, input) {
    const begin = now();
    const output = await this.#ask(instance, call, input);
    if (output.isUnknown) {
      session.unknown++;
      if (['rotate', 'signIn'].includes(call)) session.hasUnknownId = true;
      if (call === 'load') return output;
    }
    this.#record(session, call, begin, output.isUnknown ? 0 : now(), input, output);
    return output;
  }

  #record({ name }, call, begin, end, input, output) {
    this.calls.push({ session: name, call, begin, return: end, input, output });
  }

  #ask({ child, waiting }, call, input) {
    const number = ++this.#number;
    return new Promise((resolve) => {
      waiting.set(number, resolve);
      child.send({ number, call, input }, (error) => error && resolve({ isUnknown: true }));
    });
  }

  async #lives(session) {
    for (const id of session.ids) {
      const { found } = await this.#call(this.#instances[0], session, 'load', { copy: ++this.#number, id });
      if (found) return true;
    }
    return false;
  }

  async #untilHeard() {
    const deadline = Date.now() + 90_000;
    const isHeard = ({ isDead, ids }) => !isDead || this.events.some(({ sessionId }) => ids.includes(sessionId));
    while (!this.#sessions.every(isHeard) && Date.now() < deadline) await sleep(100);
  }
}
