import { type IndexedSessionRepository, type Session, SessionStoreError } from '@nest-session/core';
import { deadline, type Deadlines } from '@nest-session/core/deadlines';
import { inFlight } from './store.context.js';

/** What becomes due in the soak. */
export const soaked = deadline<{ order: number }>('soaked');

/** How many calls of each kind the clients of an instance make in a minute. */
const CALLS = { create: 71, read: 60, save: 30, rotate: 7, remove: 10, schedule: 10, cancel: 3 } as const;
const AT_A_TIME = 16;
/** Minutes after its last renewal for which a client uses a session: it lives for 30. */
const USED_FOR = 25;
/** Minutes in which a deadline is cancelled, and before which none is due. */
const CANCELLED_FOR = 4;
const EARLIEST = 5;
const LATEST = 20;

/** How many calls have succeeded, and how many have not. */
export interface Calls {
  readonly created: number;
  readonly signedIn: number;
  readonly read: number;
  readonly saved: number;
  readonly rotated: number;
  readonly deleted: number;
  readonly scheduled: number;
  readonly cancelled: number;
  /** Calls that failed, and of these the ones that create or delete a session, and the ones of deadlines. */
  readonly failed: number;
  readonly failedEnds: number;
  readonly failedDeadlines: number;
  /** Sessions that were not as they had been left. */
  readonly wrongSessions: number;
  /** Deadlines that were not. They do not wait for a replica, so a failover may lose the last ones. */
  readonly wrongDeadlines: number;
}

export const NO_CALLS: Calls = {
  created: 0,
  signedIn: 0,
  read: 0,
  saved: 0,
  rotated: 0,
  deleted: 0,
  scheduled: 0,
  cancelled: 0,
  failed: 0,
  failedEnds: 0,
  failedDeadlines: 0,
  wrongSessions: 0,
  wrongDeadlines: 0,
};

interface KnownSession {
  readonly id: string;
  readonly visits: number;
  /** The minute in which it was renewed. */
  readonly minute: number;
}

type Counted = { -readonly [Name in keyof Calls]: number };

const random = (most: number) => Math.floor(Math.random() * most);

/** The clients of an instance. They know the sessions that they have used lately, and no others. */
export class SoakClients {
  #sessions: KnownSession[] = [];
  #keys: { readonly key: string; readonly minute: number }[] = [];
  #minute = 0;
  #number = 0;
  #counted: Counted = { ...NO_CALLS };

  constructor(
    private readonly name: string,
    private readonly repository: IndexedSessionRepository,
    private readonly deadlines: Deadlines,
  ) {}

  /** Makes the calls of a minute, in any order. */
  async spend(minute: number): Promise<Calls> {
    this.#minute = minute;
    this.#counted = { ...NO_CALLS };
    this.#sessions = this.#sessions.filter((known) => minute - known.minute < USED_FOR);
    this.#keys = this.#keys.filter((known) => minute - known.minute < CANCELLED_FOR);
    const calls = Object.entries(CALLS).flatMap(([call, count]) => Array<string>(count).fill(call));
    const shuffled = calls.map((call) => [Math.random(), call] as const).toSorted(([a], [b]) => a - b);
    await inFlight(shuffled, AT_A_TIME, ([, call]) => this.#perform(call as keyof typeof CALLS));
    return this.#counted;
  }

  async #perform(call: keyof typeof CALLS): Promise<void> {
    try {
      await this[call]();
    } catch (error) {
      if (!(error instanceof SessionStoreError)) throw error;
      this.#counted.failed++;
      if (call === 'create' || call === 'remove') this.#counted.failedEnds++;
      if (call === 'schedule' || call === 'cancel') this.#counted.failedDeadlines++;
    }
  }

  private async create(): Promise<void> {
    const number = (this.#number += 1);
    const session = this.repository.createSession();
    session.setAttribute('visits', 0);
    session.setAttribute('cart', { items: [{ sku: `sku-${random(5000)}`, amount: 1 + random(5) }], currency: 'EUR' });
    session.setAttribute('locale', 'en-GB');
    if (number % 2 === 0) session.signIn(`user-${random(50_000)}`);
    await this.repository.save(session);
    this.#counted.created++;
    if (number % 2 === 0) this.#counted.signedIn++;
    this.#sessions.push({ id: session.id, visits: 0, minute: this.#minute });
  }

  private async read(): Promise<void> {
    await this.#use(async (session, known) => {
      this.#counted.read++;
      return { ...known, id: session.id };
    });
  }

  private async save(): Promise<void> {
    await this.#change('saved');
  }

  private async rotate(): Promise<void> {
    await this.#change('rotated', (session) => session.changeSessionId());
  }

  async #change(counted: 'saved' | 'rotated', act?: (session: Session) => unknown): Promise<void> {
    await this.#use(async (session, { visits }) => {
      session.setAttribute('visits', visits + 1);
      act?.(session);
      await this.repository.save(session);
      this.#counted[counted]++;
      return { id: session.id, visits: visits + 1, minute: this.#minute };
    });
  }

  private async remove(): Promise<void> {
    const known = this.#take();
    if (!known) return;
    if (await this.repository.deleteById(known.id)) this.#counted.deleted++;
    else this.#tell('wrongSessions', `A session cannot be deleted: ${JSON.stringify(known)}`);
  }

  private async schedule(): Promise<void> {
    const order = (this.#number += 1);
    const key = `${this.name}-${order}`;
    const minutes = EARLIEST + random(LATEST - EARLIEST);
    const outcome = await this.deadlines.schedule(soaked, key, {
      in: `${minutes * 60 + random(60)}s`,
      data: { order },
    });
    if (outcome === 'scheduled') this.#counted.scheduled++;
    else this.#tell('wrongDeadlines', `A new deadline was answered ${outcome}`);
    this.#keys.push({ key, minute: this.#minute });
  }

  private async cancel(): Promise<void> {
    const known = this.#keys.shift();
    if (!known) return;
    const outcome = await this.deadlines.cancel(soaked, known.key);
    if (outcome === 'cancelled') this.#counted.cancelled++;
    else this.#tell('wrongDeadlines', `A deadline of minute ${known.minute} was answered ${outcome}`);
  }

  /** One that no other call uses. Where the call fails, nobody knows what it is now, and nobody uses it again. */
  async #use(act: (session: Session, known: KnownSession) => Promise<KnownSession>): Promise<void> {
    const known = this.#take();
    if (!known) return;
    const session = await this.repository.findById(known.id);
    const visits = session?.getAttribute('visits');
    if (!session || visits !== known.visits) {
      this.#tell('wrongSessions', `A session has ${JSON.stringify(visits)} visits: ${JSON.stringify(known)}`);
      return;
    }
    this.#sessions.push(await act(session, known));
  }

  #tell(counted: 'wrongSessions' | 'wrongDeadlines', text: string): void {
    this.#counted[counted]++;
    console.error(`Minute ${this.#minute}: ${text}`);
  }

  #take(): KnownSession | undefined {
    const place = random(this.#sessions.length);
    const known = this.#sessions[place];
    const last = this.#sessions.pop();
    if (known && last && known !== last) this.#sessions[place] = last;
    return known;
  }
}
