import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import {
  type CreateSession,
  exceededBound,
  type SessionChange,
  type SessionRecord,
  type SessionRepositoryOptions,
  type UpdateSession,
  type WriteReply,
} from '@nest-session/core/store';
import {
  apply,
  endOf,
  FORWARDING_TIME,
  type FormerId,
  keptOf,
  neededUntil,
  parseSession,
  sameEnd,
  type StoredSession,
} from './stored-session.js';

export interface FileSessionRepositoryOptions extends SessionRepositoryOptions {
  /** The folder of the files; created if missing. No other process may use it. */
  readonly folder: string;
  /** For tests. @default Date */
  readonly clock?: { now(): number } | undefined;
}

/** Milliseconds; no request that signs somebody in takes longer. */
const LONGEST_REQUEST = 600_000;

/** When all sessions of a user were last ended, by folder and name. In no file, because no request outlives a process. */
const revoked = new Map<string, number>();

const FILE_NAME = /^[0-9a-f-]{36}\.session(\.tmp)?$/;

/**
 * Keeps each session in a file of a folder, for an application of one process. Every change, also a rotation, replaces
 * the whole file under its random name. The ids in the files are read once and kept in memory.
 */
export class FileSessionRepository extends IndexedSessionRepository {
  readonly #folder: string;
  readonly #clock: { now(): number };
  readonly #files = new Map<string, { name: string; neededUntil: number; indexes: ReadonlyMap<string, string> }>();
  readonly #formerIds = new Map<string, FormerId>();
  #opened: Promise<void> | undefined;
  #lastStep: Promise<unknown> = Promise.resolve();

  constructor(options: FileSessionRepositoryOptions) {
    super(options);
    this.#folder = options.folder;
    this.#clock = options.clock ?? Date;
  }

  /** Removes the files of expired sessions, and former ids that are no longer needed. */
  async removeExpired(): Promise<void> {
    await this.#open();
    const isOver = (id: string) => (this.#files.get(id)?.neededUntil ?? Infinity) <= this.#clock.now();
    for (const id of [...this.#files.keys()].filter(isOver)) {
      await this.#alone(async () => isOver(id) && (await this.#remove(id)));
    }
    for (const id of this.#formerIds.keys()) if (!this.#former(id)) this.#formerIds.delete(id);
  }

  protected async load(ids: readonly string[]): Promise<SessionRecord[]> {
    await this.#open();
    const records = ids.map((id) => this.#record(this.#files.get(id)?.name, (session) => session.id === id));
    return (await Promise.all(records)).flat();
  }

  protected async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    await this.#open();
    const listed = [...this.#files.values()].filter(({ indexes }) => indexes.get(indexName) === value);
    const isListed = ({ indexes }: StoredSession) => new Map(indexes).get(indexName) === value;
    return (await Promise.all(listed.map(({ name }) => this.#record(name, isListed)))).flat();
  }

  protected override async readClock(): Promise<number> {
    return this.#clock.now();
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    await this.#open();
    return this.#alone(() => this.#step(change));
  }

  protected override endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    const now = performance.now();
    for (const [each, at] of revoked) if (now - at > LONGEST_REQUEST) revoked.delete(each);
    if (indexName === PRINCIPAL_NAME_INDEX_NAME) revoked.set(`${this.#folder}\n${value}`, now);
    return super.endListed(indexName, value, except);
  }

  protected override async endEvery(): Promise<void> {
    await this.#open();
    const ids = Array.from(this.#files.keys());
    for (const id of ids) await this.#alone(() => this.#step({ kind: 'delete', id }));
  }

  async #step(change: SessionChange): Promise<WriteReply> {
    const now = this.#clock.now();
    if (change.kind === 'create') {
      if (change.presentedIds.some((id) => this.#goesOn(id))) return { outcome: 'gone' };
      if (this.#isTaken(change.id)) return { outcome: 'collision' };
      if (this.#isRevoked(change)) return { outcome: 'revoked' };
      if (!(await this.#makesRoom(change, change.id))) return { outcome: 'refused' };
      const { id, maxInactiveInterval, absoluteTimeout, device } = change;
      const data = { attributes: apply(change.attributes, []), indexes: apply(change.indexes, []), formerIds: [] };
      const authenticatedAt = change.signsIn ? now : undefined;
      const times = { creationTime: now, lastAccessedTime: now, authenticatedAt, maxInactiveInterval, absoluteTimeout };
      const session = { id, ...times, device, ...data };
      await this.#store(`${randomUUID()}.session`, { ...session, end: endOf(session, now) });
      return { outcome: 'created', creationTime: now };
    }

    const newId = change.kind === 'update' ? change.newId : undefined;
    const isRepeated = newId !== undefined && this.#former(change.id)?.newId === newId;
    let id = isRepeated ? newId : change.id;
    let late: LaterChange = change;
    let former = this.#former(id);
    for (; former?.leadsOn && !this.#files.has(id); former = this.#former(id)) {
      late = withoutSealed(late, former);
      id = former.newId;
    }
    if (former && !former.leadsOn) return isRepeated ? { outcome: 'saved' } : goneBy(change, former);
    const name = this.#files.get(id)?.name;
    const session = await this.#read(name);
    if (!name || !session || session.end <= now) return { outcome: 'gone' };
    if (isRepeated) return savedAgain(session);
    const isForwarded = session.id !== change.id;
    if (change.kind === 'delete') {
      const { listed } = change;
      const isListed = !listed || new Map(session.indexes).get(listed.indexName) === listed.value;
      if (!isListed) return { outcome: 'gone' };
      await this.#end(name, session, now);
    } else {
      // A touch is an update without changes.
      const none = { attributes: new Map(), indexes: new Map() };
      const update: UpdateSession = late.kind === 'update' ? late : { ...none, kind: 'update', id: change.id };
      const refusal = this.#refusal(update, session, isForwarded);
      if (refusal) return refusal;
      const endsNow = update.maxInactiveInterval === 0 || update.absoluteTimeout === 0;
      if (!endsNow && this.#isRevoked(update)) return { outcome: 'revoked' };
      if (!endsNow && !(await this.#makesRoom(update, session.id))) return { outcome: 'refused' };
      await this.#update(name, session, update, now);
      if (update.signIn) return { outcome: 'saved', authenticatedAt: now };
    }
    if (isForwarded) return { outcome: 'forwarded' };
    return { outcome: change.kind === 'touch' ? 'touched' : change.kind === 'delete' ? 'deleted' : 'saved' };
  }

  /** Whether all sessions of a user were ended after the request began that makes the session one of theirs. */
  #isRevoked({ begunAt = Infinity, indexes }: Pick<CreateSession, 'begunAt' | 'indexes'>): boolean {
    const name = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
    return typeof name === 'string' && begunAt < (revoked.get(`${this.#folder}\n${name}`) ?? -Infinity);
  }

  /** Ends the other sessions of the principal that are too many. False: one more is refused, and none has ended. */
  async #makesRoom({ limit, indexes }: Pick<CreateSession, 'limit' | 'indexes'>, own: string): Promise<boolean> {
    if (!limit || indexes.get(PRINCIPAL_NAME_INDEX_NAME) !== limit.principal) return true;
    const listed = await this.lookUp(PRINCIPAL_NAME_INDEX_NAME, limit.principal);
    const signedInAt = ({ authenticatedAt, creationTime }: SessionRecord) => authenticatedAt ?? creationTime;
    const others = listed.filter(({ id }) => id !== own).sort((a, b) => signedInAt(b) - signedInAt(a));
    const surplus = others.slice(limit.atMost - 1);
    if (surplus.length > 0 && limit.whenReached === 'refuse') return false;
    for (const { id } of surplus.reverse()) await this.#step({ kind: 'delete', id });
    return true;
  }

  /** The outcome of an update that must not be done. */
  #refusal(change: UpdateSession, session: StoredSession, isForwarded: boolean): WriteReply | undefined {
    const { newId, expected } = change;
    const changesTimes = change.absoluteTimeout !== undefined || (change.maxInactiveInterval ?? 0) !== 0;
    if (isForwarded && (newId !== undefined || changesTimes || change.indexes.size > 0)) {
      return change.signIn || change.clears ? { outcome: 'gone', rotated: true } : { outcome: 'gone' };
    }
    const current = expected && new Map(session.attributes).get(expected.name);
    if (current !== expected?.text) return isForwarded ? { outcome: 'gone' } : { outcome: 'conflict', current };
    if (newId !== undefined && this.#isTaken(newId)) return { outcome: 'collision' };
    const bound = exceededBound(change, session.attributes);
    return bound ? { outcome: 'full', bound } : undefined;
  }

  async #update(name: string, session: StoredSession, change: UpdateSession, now: number): Promise<void> {
    const { newId, signIn } = change;
    const signsOut = change.signsOut && session.id === change.id;
    const authenticatedAt = signIn ? now : signsOut ? undefined : session.authenticatedAt;
    const kept = change.clears ? [] : keptOf(session.attributes, signIn);
    const changed: StoredSession = {
      ...session,
      authenticatedAt,
      lastAccessedTime: change.keepsIdle ? session.lastAccessedTime : Math.max(now, session.lastAccessedTime),
      maxInactiveInterval: change.maxInactiveInterval ?? session.maxInactiveInterval,
      absoluteTimeout: change.absoluteTimeout ?? sameEnd(session, { ...session, authenticatedAt }),
      attributes: apply(change.attributes, kept),
      indexes: apply(change.indexes, session.indexes),
      device: change.device ?? session.device,
      formerIds: session.formerIds.filter(({ changedAt }) => now - changedAt < FORWARDING_TIME),
    };
    const next = { ...changed, end: endOf(changed, now) };
    if (next.end <= now) return this.#end(name, session, now);
    if (newId === undefined) return this.#store(name, next);
    const [was, is] = [session, changed].map(({ indexes }) => new Map(indexes).get(PRINCIPAL_NAME_INDEX_NAME));
    const leadsOn = !change.clears && !change.closes && was === is;
    const isLeft = !leadsOn && is === undefined && (was !== undefined || change.signsOut === true);
    const former = { id: session.id, newId, changedAt: now, leadsOn, isLeft, kept: signIn };
    await this.#store(name, { ...next, id: newId, formerIds: [...next.formerIds, former] });
    this.#files.delete(session.id);
  }

  async #end(name: string, session: StoredSession, now: number): Promise<void> {
    const ended = { ...session, attributes: [], indexes: [], end: 0 };
    await (neededUntil(ended) <= now ? this.#remove(session.id) : this.#store(name, ended));
  }

  #isTaken(id: string): boolean {
    return this.#files.has(id) || this.#former(id) !== undefined;
  }

  /** A recent rotation that replaced this id. */
  #former(id: string): FormerId | undefined {
    const former = this.#formerIds.get(id);
    return former && this.#clock.now() - former.changedAt < FORWARDING_TIME ? former : undefined;
  }

  /** Whether the client of the session that had this id has, or gets, another id, and not only by signing out. */
  #goesOn(id: string): boolean {
    const former = this.#former(id);
    return former !== undefined && (!former.isLeft || this.#goesOn(former.newId));
  }

  /** Runs a step after all earlier ones. */
  #alone<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#lastStep.then(step);
    this.#lastStep = result.catch(() => undefined);
    return result;
  }

  /** Reads the folder: once, and again if that failed. */
  #open(): Promise<void> {
    this.#opened ??= this.#readFolder().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #readFolder(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(this.#folder)).filter((file) => FILE_NAME.test(file))) {
      const isWhole = !name.endsWith('.tmp');
      // An application serves nothing yet; to wait for each of thousands of small files takes several times as long.
      const session = isWhole ? parseSession(readFileSync(join(this.#folder, name), 'utf8')) : undefined;
      if (session) this.#remember(name, session);
      else await rm(join(this.#folder, name), { force: true });
    }
  }

  #remember(name: string, session: StoredSession): void {
    this.#files.set(session.id, { name, neededUntil: neededUntil(session), indexes: new Map(session.indexes) });
    for (const former of session.formerIds) this.#formerIds.set(former.id, former);
    this.#formerIds.delete(session.id);
  }

  async #read(name: string | undefined): Promise<StoredSession | undefined> {
    const text = name && (await this.#unlessMissing(readFile(join(this.#folder, name), 'utf8')));
    return text ? parseSession(text) : undefined;
  }

  async #record(name: string | undefined, isWanted: (session: StoredSession) => boolean): Promise<SessionRecord[]> {
    const session = await this.#read(name);
    const timeToLive = session ? session.end - this.#clock.now() : 0;
    if (!session || timeToLive <= 0 || !isWanted(session)) return [];
    return [{ ...session, timeToLive: timeToLive === Infinity ? undefined : timeToLive }];
  }

  async #store(name: string, session: StoredSession): Promise<void> {
    const path = join(this.#folder, name);
    await writeFile(`${path}.tmp`, JSON.stringify(session), { mode: 0o600, flush: true });
    await rename(`${path}.tmp`, path);
    this.#remember(name, session);
  }

  async #remove(id: string): Promise<void> {
    await this.#unlessMissing(rm(join(this.#folder, this.#files.get(id)?.name ?? '')));
    this.#files.delete(id);
  }

  /** A missing file is a missing session; a missing folder is an error. */
  async #unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await access(this.#folder);
      return undefined;
    }
  }
}

/** A change of a session that exists. */
type LaterChange = Exclude<SessionChange, CreateSession>;

/** A late change without the attributes that a sign-in did not keep. */
function withoutSealed(change: LaterChange, former: FormerId | undefined): LaterChange {
  const kept = former?.kept;
  if (change.kind !== 'update' || !kept) return change;
  const attributes = new Map(keptOf(change.attributes, kept));
  const isCompared = change.expected && keptOf([[change.expected.name, '']], kept).length > 0;
  return { ...change, attributes, expected: isCompared ? change.expected : undefined };
}

/** The reply to a late change that must not reach the session. */
function goneBy(change: LaterChange, { isLeft }: FormerId): WriteReply {
  const isEnd = change.kind === 'delete' || (change.kind === 'update' && change.maxInactiveInterval === 0);
  return change.kind === 'touch' || (isLeft && isEnd) ? { outcome: 'gone' } : { outcome: 'gone', rotated: true };
}

/** The reply to a rotation that was done before. */
function savedAgain({ authenticatedAt }: StoredSession): WriteReply {
  return authenticatedAt === undefined ? { outcome: 'saved' } : { outcome: 'saved', authenticatedAt };
}
