import {
  Delete,
  Get,
  HttpCode,
  Inject,
  Injectable,
  NotFoundException,
  Optional,
  Param,
  Query,
  Req,
} from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository, Sessions } from '@nest-session/core';
import {
  beganAt,
  type InspectedSession,
  inspectSessions,
  isOwnAttribute,
  PRINCIPAL_ATTRIBUTE,
  requestOf,
  requestSessionOf,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS, toSessionInfo } from '@nest-session/core/store';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';
import { shownInstant, shownValue } from '../http/shown.js';
import { Needs } from '../access/admin.guards.js';
import { AdminActions } from '../audit/admin-actions.js';
import { limitIn, numberIn, type Query as Parameters, requiredText, textIn } from '../http/query.js';

type SessionOfUser = InspectedSession & { readonly id: string; readonly shownId: string };

@Injectable()
export class UserSessions {
  constructor(
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Optional() @Inject(Sessions) private readonly all?: Sessions,
    @Optional() @Inject(SessionRepository) private readonly repository?: SessionRepository,
    @Optional()
    @Inject(SESSION_OPTIONS)
    private readonly sessionOptions?: Pick<ResolvedSessionOptions, 'ids' | 'indexes'>,
  ) {}

  get areThere(): boolean {
    return this.all !== undefined && this.repository !== undefined;
  }

  get areIndexed(): boolean {
    return this.areThere && this.repository instanceof IndexedSessionRepository;
  }

  get indexes(): readonly string[] {
    return this.areIndexed ? (this.sessionOptions?.indexes.names ?? []) : [];
  }

  get areNamed(): boolean {
    return this.options.users !== undefined;
  }

  async named(typed: string) {
    const { users } = this.options;
    const names: unknown = users ? await users.find(typed) : [typed];
    if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) throw new TypeError(NO_NAMES);
    const all = [...new Set<string>(names)].slice(0, MOST_USERS);
    return Promise.all(all.map(async (username) => ({ username, label: await this.#labelOf(username) })));
  }

  async #labelOf(username: string): Promise<string | null> {
    return (await this.options.users?.label?.(username)) ?? null;
  }

  async list(request: object, username: string, offset: number, limit: number) {
    const sessions = this.#indexed;
    const [count, all] = [sessions.count(username), sessions.ofPrincipal(username)];
    // One may have got another user since the index was read.
    return this.#page(request, count, all, offset, limit, (name) => (name ?? username) === username);
  }

  async listBy(request: object, index: string, value: string, offset: number, limit: number) {
    if (!this.indexes.includes(index)) throw new NotFoundException('This application has no such index');
    const repository = this.#repository as IndexedSessionRepository;
    const [count, all] = [repository.countByIndex(index, value), repository.listByIndex(index, value)];
    return this.#page(request, count, all, offset, limit, () => true);
  }

  async #page(
    request: object,
    count: Promise<number>,
    all: AsyncIterable<{ readonly id: string }>,
    offset: number,
    limit: number,
    isOne: (principal: string | undefined) => boolean,
  ) {
    // One more tells whether there is another page.
    const [total, ids] = await Promise.all([count, idsFrom(all, offset, limit + 1)]);
    const wanted = ids.slice(0, limit);
    const found = await inspectSessions(this.#repository, wanted);
    const shown = found.filter((each) => isOne(readablePrincipal(each)));
    const inOrder = shown.toSorted((a, b) => wanted.indexOf(a.record.id) - wanted.indexOf(b.record.id));
    return {
      sessions: await this.#showAll(request, inOrder),
      total,
      /** The `offset` of the next page; null: this is the last one. */
      next: ids.length > limit ? offset + limit : null,
    };
  }

  async #showAll(request: object, found: readonly InspectedSession[]) {
    const ownId = requestSessionOf(requestOf(request))?.existing?.storedId;
    const names = [...new Set(found.map(readablePrincipal))];
    const labels = new Map(
      await Promise.all(
        names.map(async (name) => [name, name === undefined ? null : await this.#labelOf(name)] as const),
      ),
    );
    return found.map((each) => ({
      ...showSession(each, ownId, (id) => this.#shown(id)),
      label: labels.get(readablePrincipal(each)) ?? null,
    }));
  }

  async show(request: object, found: SessionOfUser) {
    const attributes = attributesOf(found, this.options.values);
    const [session] = await this.#showAll(request, [found]);
    return { ...session!, attributes };
  }

  /** With `username`, only a session of this user. @throws NotFoundException where there is none */
  async find(shownId: string, username: string | undefined): Promise<SessionOfUser> {
    const id = await this.#storedId(shownId, username);
    const [found] = id === undefined ? [] : await inspectSessions(this.#repository, [id]);
    if (!found || (username !== undefined && !(await this.#isOf(username, found))))
      throw new NotFoundException(NO_SESSION);
    return { ...found, id: found.record.id, shownId };
  }

  end({ id }: SessionOfUser, username: string | undefined): Promise<boolean> {
    return username === undefined ? this.#sessions.end(id) : this.#sessions.end(id, { of: username });
  }

  endAll(username: string): Promise<number> {
    return this.#indexed.endAll(username);
  }

  /** Whether it is a session of a user. The index decides where the name cannot be read, as without its key. */
  async #isOf(username: string, found: InspectedSession): Promise<boolean> {
    const name = readablePrincipal(found);
    const holdsName = [...found.record.attributes].some(([each]) => each === PRINCIPAL_ATTRIBUTE);
    if (name !== undefined || !this.areIndexed || !holdsName) return name === username;
    for await (const { id } of this.#indexed.ofPrincipal(username)) if (id === found.record.id) return true;
    return false;
  }

  /** An id that is a token is never shown: its fingerprint is looked up among those of a user. */
  async #storedId(shownId: string, username: string | undefined): Promise<string | undefined> {
    if (this.#shown(shownId) === shownId) return shownId;
    if (username === undefined) throw new NotFoundException(FINGERPRINT_ALONE);
    for await (const { id } of this.#indexed.ofPrincipal(username)) if (this.#shown(id) === shownId) return id;
    return undefined;
  }

  #shown(id: string): string {
    return this.sessionOptions?.ids.shown(id) ?? id;
  }

  get #sessions(): Sessions {
    if (!this.areThere) throw new NotFoundException('This application has no sessions');
    return this.all!;
  }

  get #repository(): SessionRepository {
    void this.#sessions;
    return this.repository!;
  }

  get #indexed(): Sessions {
    if (this.areThere && !this.areIndexed)
      throw new NotFoundException('The store of the sessions has no index of users');
    return this.#sessions;
  }
}

async function idsFrom(sessions: AsyncIterable<{ readonly id: string }>, offset: number, most: number) {
  const ids: string[] = [];
  for await (const { id } of sessions) if (ids.push(id) >= offset + most) break;
  return ids.slice(offset);
}

const MOST_USERS = 50;

const NO_NAMES =
  'Option `users.find` of SessionAdminModule must return a list of principals, which are texts, or a promise of one';

const NO_SESSION = 'No live session has this id';

const FINGERPRINT_ALONE =
  "With sessionIds: 'plain', a session is found by its fingerprint and its user: add the parameter username";

/** A session without any value. The first six are those of Spring's actuator. */
function showSession(
  { record, session }: InspectedSession,
  ownId: string | undefined,
  shownId: (id: string) => string,
) {
  const { id, creationTime, lastAccessedTime, maxInactiveInterval, authenticatedAt, device } = toSessionInfo(record);
  const absoluteExpiry = endAfter(record.absoluteTimeout, beganAt(record));
  const expiry = Math.min(endAfter(record.maxInactiveInterval, record.lastAccessedTime), absoluteExpiry);
  return {
    id: shownId(id),
    attributeNames: namesOf(session),
    creationTime: shownInstant(creationTime),
    lastAccessedTime: shownInstant(lastAccessedTime),
    /** Seconds; negative: none. */
    maxInactiveInterval,
    // Stores find no others.
    expired: false,
    /** Null where nobody is signed in. */
    principalName: readablePrincipal({ session }) ?? null,
    authenticatedTime: shownInstant(authenticatedAt),
    /** When it expires unless it is used; null: never. */
    expirationTime: shownInstant(expiry),
    /** When it expires even if it is used; null: never. */
    absoluteExpirationTime: shownInstant(absoluteExpiry),
    device: device ? { address: device.address ?? null, userAgent: device.userAgent ?? null } : null,
    /** Null where it is bound to no browser, or its browser does not know yet. */
    bound: session.device?.bound ? { since: shownInstant(session.device.since), by: session.device.algorithm } : null,
    /** Bytes of the names and the texts of its attributes. */
    size: attributesOf({ record, session }).reduce((sum, { size }) => sum + size, 0),
    isOwn: id === ownId,
  };
}

function endAfter(seconds: number, since: number): number {
  return seconds < 0 ? Infinity : since + seconds * 1000;
}

function attributesOf({ record, session }: InspectedSession, values?: (name: string, value: unknown) => unknown) {
  const names = namesOf(session);
  return [...record.attributes]
    .filter(([name]) => names.includes(name))
    .map(([name, text]) => ({
      name,
      size: Buffer.byteLength(name) + (typeof text === 'string' ? Buffer.byteLength(text) : text.bytes),
      ...shownValue(values && (() => values(name, session.getAttribute<unknown>(name)))),
    }));
}

/** Without those of the library: the principal is shown as such, and a CSRF token is for nobody. */
function namesOf({ attributeNames }: InspectedSession['session']): readonly string[] {
  return attributeNames.filter((name) => !isOwnAttribute(name));
}

/** Undefined where nobody is signed in, or where the name cannot be read, as without its key. */
function readablePrincipal({ session }: Pick<InspectedSession, 'session'>): string | undefined {
  try {
    return session.principalName;
  } catch {
    return undefined;
  }
}

// A page costs the reading of all before it.
const FURTHEST = 100_000;

export class SessionsController {
  constructor(
    @Inject(UserSessions) private readonly sessions: UserSessions,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  @Get('sessions')
  list(@Req() request: object, @Query() query: Parameters) {
    const offset = numberIn(query, 'offset', 0, { atLeast: 0, atMost: FURTHEST });
    const index = textIn(query, 'index');
    if (index !== undefined)
      return this.sessions.listBy(request, index, requiredText(query, 'value'), offset, limitIn(query));
    return this.sessions.list(request, requiredText(query, 'username'), offset, limitIn(query));
  }

  @Get('users')
  async users(@Query() query: Parameters) {
    return { users: await this.sessions.named(requiredText(query, 'text')) };
  }

  @Get('sessions/:id')
  async show(@Req() request: object, @Param('id') id: string, @Query() query: Parameters) {
    return this.sessions.show(request, await this.sessions.find(id, textIn(query, 'username')));
  }

  @Delete('sessions/:id')
  @HttpCode(204)
  @Needs('end')
  async end(@Req() request: object, @Param('id') id: string, @Query() query: Parameters): Promise<void> {
    const username = textIn(query, 'username');
    const found = await this.sessions.find(id, username);
    const { id: sessionId, shownId } = found;
    const action = { action: 'end-session', sessionId, shownId, principalName: readablePrincipal(found) } as const;
    const isEnded = await this.actions.run(request, action, () => this.sessions.end(found, username));
    if (!isEnded) throw new NotFoundException(NO_SESSION);
  }

  @Delete('sessions')
  @Needs('end')
  async endAll(@Req() request: object, @Query() query: Parameters): Promise<{ ended: number }> {
    const principalName = requiredText(query, 'username');
    const action = { action: 'end-sessions', principalName } as const;
    return { ended: await this.actions.run(request, action, () => this.sessions.endAll(principalName)) };
  }
}
