import { Controller, Get, Post } from '@nestjs/common';
import { HttpAgent, ManualClock } from '@nest-session/testing';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { OnSecurityEvent, Session, type SessionModuleOptions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';
import { MINUTE } from './device.app.js';
import { randomOf } from './random.js';

afterEach(closeApps);

const REQUESTS = Number(process.env['HONEST_REQUESTS'] ?? 200_000);
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const USERS = Math.min(500, REQUESTS / 400);
const SECOND = 1000;
/** Milliseconds: what happens within them happens at once. */
const TICK = 250;

@Controller()
class Routes {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
    return 'ann';
  }

  @Get('who')
  who(@Session() session: Session) {
    return session.principalName ?? 'nobody';
  }
}

let alarms = 0;

class Hears {
  @OnSecurityEvent('reused-token')
  hear() {
    alarms++;
  }
}

// Without the guard against leaks: it remembers what has caused what, and here everything causes the next thing.

/** Time in ticks: what is due in one runs at once, and then comes the next one. */
class Time {
  readonly #due = new Map<number, (() => unknown)[]>();
  #now = 0;

  constructor(private readonly clock: ManualClock) {}

  in(ms: number, run: () => unknown): void {
    const at = this.#now + Math.max(1, Math.round(ms / TICK));
    const due = this.#due.get(at);
    if (due) due.push(run);
    else this.#due.set(at, [run]);
  }

  async pass(): Promise<void> {
    while (this.#due.size > 0) {
      this.#now++;
      this.clock.advance(TICK);
      const due = this.#due.get(this.#now);
      this.#due.delete(this.#now);
      if (due) await Promise.all(due.map((run) => run()));
    }
  }
}

const counts = { sent: 0, changes: 0, out: 0 };

/**
 * An honest user: some tabs that share their cookies, requests that reach the server up to 55 s after they left and not
 * in their order, responses that are lost or come late, requests that the browser or the user sends again, and a laptop
 * that sleeps.
 */
class HonestUser {
  #cookie = '';

  constructor(
    private readonly agent: HttpAgent,
    private readonly time: Time,
    private readonly random: () => number,
  ) {}

  async begin(): Promise<void> {
    this.#take((await this.agent.post('/sign-in', undefined, { headers: { cookie: '' } })).setCookies);
    this.#live();
  }

  #live(): void {
    const { random, time } = this;
    if (counts.sent >= REQUESTS) return;
    for (let i = random() < 0.3 ? 1 + Math.floor(random() * 8) : 1; i > 0; i--) this.#send(random() < 0.3, 2);
    const pause = random() < 0.02 ? random() * 8 * 60 * MINUTE : random() ** 2 * MINUTE;
    time.in(pause, () => this.#live());
  }

  #send(isPage: boolean, retries: number, cookie = this.#cookie, wait = this.random() ** 6 * 55 * SECOND): void {
    counts.sent++;
    this.time.in(wait, async () => {
      const [mode, destination] = isPage ? ['navigate', 'document'] : ['cors', 'empty'];
      const headers = { cookie, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination, 'x-forwarded-proto': 'https' };
      const answer = await this.agent.get('/who', { headers });
      if (answer.text !== 'ann') counts.out++;
      const loss = this.random();
      if (loss > 0.1) this.time.in(this.random() * 5 * SECOND, () => this.#take(answer.setCookies));
      // The browser itself, with what it has sent.
      else if (loss < 0.03) this.#send(isPage, 0, cookie, this.random() * 2 * SECOND);
      else if (retries > 0) this.time.in(this.random() * 5 * SECOND, () => this.#send(isPage, retries - 1));
    });
  }

  #take(lines: readonly string[]): void {
    for (const line of lines) {
      const [, cookie] = /^(SESSION=[^;]+)/.exec(line)!;
      if (this.#cookie !== '' && this.#cookie !== cookie) counts.changes++;
      this.#cookie = cookie!;
    }
  }
}

it(
  `of ${REQUESTS} honest requests, none looks as if two had the token, and none is without its session, seed ${SEED}`,
  async () => {
    const session: SessionModuleOptions = { rotateEvery: '15m', timeout: '30d' };
    const clock = new ManualClock(Date.now());
    const store = new GatedRepository({ ...resolveSessionOptions(session), clock });
    const routes = { controllers: [Routes], providers: [Hears] };
    const { origin } = await startApp({ platform: 'fastify', ...routes, session, store });
    const agent = new HttpAgent(origin, { keepAlive: true });
    const time = new Time(clock);
    const forget = () => {
      for (const list of [store.calls, store.changes, store.lookUps]) list.length = 0;
      if (counts.sent < REQUESTS) time.in(MINUTE, forget);
    };
    forget();
    for (let i = 0; i < USERS; i++) {
      await new HonestUser(agent, time, randomOf(SEED + i)).begin();
    }
    await time.pass();
    agent.close();
    expect(counts.changes).toBeGreaterThan(REQUESTS / 200);
    expect({ alarms, out: counts.out }).toEqual({ alarms: 0, out: 0 });
  },
  6 * 3_600_000,
);
