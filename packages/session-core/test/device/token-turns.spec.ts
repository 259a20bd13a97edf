import { randomOf } from './random.js';
import { advanced, firstTurns, type TokenTurns, turnText, used, verdictOf } from '../../src/device/token-turns.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const EVERY = 15 * MINUTE;

/** What the server does with a request, as `RotatingTokens` does. */
class Server {
  turns: TokenTurns | undefined;
  alarms = 0;
  changes = 0;

  /** The text that the response brings; undefined for none. */
  answer(text: string, isPage: boolean, now: number): string | undefined {
    const verdict = verdictOf(this.turns, text, now);
    if (verdict === 'reused') this.alarms++;
    if (verdict === 'former') return isPage ? turnText(this.turns!) : undefined;
    if (verdict === 'reused') return undefined;
    if (this.turns && this.turns.usedAt === undefined) {
      this.turns = used(this.turns, now);
      return undefined;
    }
    if (!isPage) return undefined;
    const before = this.turns;
    if (!before && now < EVERY) return undefined;
    this.turns = before ? advanced(before, EVERY, now) : firstTurns(now);
    if (this.turns === before) return undefined;
    this.changes++;
    return turnText(this.turns);
  }
}

/**
 * An honest user: some tabs that share their cookies, requests that reach the server up to 55 s after they left and not
 * in their order, responses that are lost or come late, requests that are sent again, and a laptop that sleeps.
 */
function live(requests: number, seed: number): Server {
  const random = randomOf(seed);
  const server = new Server();
  let jar = '';
  let now = 0;
  let steps: { readonly at: number; readonly run: () => void }[] = [];
  const runUntil = (end: number) => {
    for (;;) {
      const due = steps.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
      if (due.length === 0) break;
      steps = steps.filter(({ at }) => at > end);
      for (const { at, run } of due) {
        now = at;
        run();
      }
    }
    now = end;
  };
  const send = (isPage: boolean, retries: number) => {
    const text = jar;
    const arrival = now + 10 + random() ** 6 * 55 * SECOND;
    const isLost = random() < 0.1;
    const run = () => {
      const brought = server.answer(text, isPage, now);
      if (isLost) {
        if (retries > 0) steps.push({ at: now + 100 + random() * 5 * SECOND, run: () => send(isPage, retries - 1) });
      } else if (brought !== undefined) steps.push({ at: now + random() * 5 * SECOND, run: () => (jar = brought) });
    };
    steps.push({ at: arrival, run });
  };
  for (let sent = 0; sent < requests;) {
    const isBurst = random() < 0.3;
    for (let i = isBurst ? 1 + Math.floor(random() * 8) : 1; i > 0; i--, sent++) send(random() < 0.3, 2);
    const pause = random() < 0.02 ? random() * 8 * 60 * MINUTE : random() ** 2 * MINUTE;
    runUntil(now + pause);
  }
  runUntil(now + 10 * MINUTE);
  return server;
}

it('no honest request looks as if two had the token', () => {
  let [alarms, changes] = [0, 0];
  for (let seed = 1; seed <= 20; seed++) {
    const server = live(Number(process.env['HONEST_REQUESTS'] ?? 40_000) / 20, seed);
    alarms += server.alarms;
    changes += server.changes;
  }
  expect(changes).toBeGreaterThan(500);
  expect(alarms).toBe(0);
});

it('who has copied a token is reported, whoever comes first', () => {
  for (const isThiefFirst of [true, false]) {
    const server = new Server();
    let [owner, thief] = ['', ''];
    const visit = (isOwner: boolean, now: number) => {
      const text = server.answer(isOwner ? owner : thief, true, now);
      if (text !== undefined && isOwner) owner = text;
      else if (text !== undefined) thief = text;
    };
    for (let turn = 1; turn <= 4; turn++) {
      const now = turn * EVERY;
      visit(!isThiefFirst, now);
      visit(!isThiefFirst, now + 1);
      visit(isThiefFirst, now + 2 * MINUTE);
    }
    expect(server.alarms).toBe(4);
    expect([owner, thief].filter((text) => text === '')).toHaveLength(1);
  }
});
