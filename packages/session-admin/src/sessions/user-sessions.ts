import { Inject, Injectable, NotFoundException, Optional } from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository, Sessions } from '@nest-session/core';
import {
  type InspectedSession,
  inspectSessions,
  PRINCIPAL_ATTRIBUTE,
  requestOf,
  requestSessionOf,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';
import {
  attributesOf,
  readablePrincipal,
  type ShowingContext,
  showSession,
  type ShownSession,
  type ShownSessionDetails,
} from './shown-session.js';

/** A page of the sessions of a user. */
export interface SessionPage {
  readonly sessions: readonly ShownSession[];
  /** How many sessions the user has. */
  readonly total: number;
  /** The `offset` of the next page; null: this is the last one. */
  readonly next: number | null;
}

/** A session that was found, by the id that its store knows. */
export type SessionOfUser = InspectedSession & { readonly id: string; readonly shownId: string };

/** Finds the sessions of users. */
@Injectable()
export class UserSessions {
  constructor(
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Optional() @Inject(Sessions) private readonly all?: Sessions,
    @Optional() @Inject(SessionRepository) private readonly repository?: SessionRepository,
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessionOptions?: Pick<ResolvedSessionOptions, 'ids'>,
  ) {}

  /** Whether the application has sessions. */
  get areThere(): boolean {
    return this.all !== undefined && this.repository !== undefined;
  }

  /** Whether they can be found by their user. */
  get areIndexed(): boolean {
    return this.areThere && this.repository instanceof IndexedSessionRepository;
  }

  /** The sessions of a user, the latest sign-in first. */
  async list(
    request: object,
    username: string,
    { offset, limit }: { readonly offset: number; readonly limit: number },
  ): Promise<SessionPage> {
    const sessions = this.#indexed;
    const [total, ids] = await Promise.all([
      sessions.count(username),
      // One more tells whether there is another page.
      idsFrom(sessions.ofPrincipal(username), offset, limit + 1),
    ]);
    const wanted = ids.slice(0, limit);
    const found = await inspectSessions(this.#repository, wanted);
    const context = this.#context(request);
    // One may have got another user since the index was read.
    const theirs = found.filter((each) => (readablePrincipal(each) ?? username) === username);
    const inOrder = theirs.toSorted((a, b) => wanted.indexOf(a.record.id) - wanted.indexOf(b.record.id));
    return {
      sessions: inOrder.map((each) => showSession(each, context)),
      total,
      next: ids.length > limit ? offset + limit : null,
    };
  }

  /** Everything that may be shown of a session. */
  show(request: object, found: SessionOfUser): ShownSessionDetails {
    return {
      ...showSession(found, this.#context(request)),
      attributes: attributesOf(found, this.options.values),
    };
  }

  /**
   * The session that an id names which was shown. With `username`, only a session of this user.
   * @throws NotFoundException where there is none
   */
  async find(shownId: string, username: string | undefined): Promise<SessionOfUser> {
    const id = await this.#storedId(shownId, username);
    const [found] = id === undefined ? [] : await inspectSessions(this.#repository, [id]);
    if (!found || (username !== undefined && !(await this.#isOf(username, found))))
      throw new NotFoundException(NO_SESSION);
    return { ...found, id: found.record.id, shownId };
  }

  /** Ends a session. Resolves to false where it has ended already. */
  end({ id }: SessionOfUser, username: string | undefined): Promise<boolean> {
    return username === undefined ? this.#sessions.end(id) : this.#sessions.end(id, { of: username });
  }

  /** Ends all sessions of a user. Resolves to their number. */
  endAll(username: string): Promise<number> {
    return this.#indexed.endAll(username);
  }

  /** Whether it is a session of a user. The index decides where the name cannot be read, as without its key. */
  async #isOf(username: string, found: InspectedSession): Promise<boolean> {
    const name = readablePrincipal(found);
    if (name !== undefined || !this.areIndexed || !holdsPrincipal(found)) return name === username;
    for await (const { id } of this.#indexed.ofPrincipal(username)) if (id === found.record.id) return true;
    return false;
  }

  /**
   * An id that is a token is never shown, and opens nothing here: its fingerprint is looked up among those of a user.
   */
  async #storedId(shownId: string, username: string | undefined): Promise<string | undefined> {
    if (this.#shown(shownId) === shownId) return shownId;
    if (username === undefined) throw new NotFoundException(FINGERPRINT_ALONE);
    for await (const { id } of this.#indexed.ofPrincipal(username)) if (this.#shown(id) === shownId) return id;
    return undefined;
  }

  #context(request: object): ShowingContext {
    const ownId = requestSessionOf(requestOf(request))?.existing?.storedId;
    return { ownId, shownId: (id) => this.#shown(id) };
  }

  #shown(id: string): string {
    return this.sessionOptions?.ids.shown(id) ?? id;
  }

  get #sessions(): Sessions {
    if (!this.all || !this.repository) throw new NotFoundException('This application has no sessions');
    return this.all;
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

/** Whether a name is stored, also one that cannot be read. */
function holdsPrincipal({ record }: InspectedSession): boolean {
  return [...record.attributes].some(([name]) => name === PRINCIPAL_ATTRIBUTE);
}

async function idsFrom(
  sessions: AsyncIterable<{ readonly id: string }>,
  offset: number,
  most: number,
): Promise<string[]> {
  const ids: string[] = [];
  let index = 0;
  for await (const { id } of sessions) {
    if (index++ >= offset) ids.push(id);
    if (ids.length >= most) break;
  }
  return ids;
}

export const NO_SESSION = 'No live session has this id';

const FINGERPRINT_ALONE =
  "With sessionIds: 'plain', a session is found by its fingerprint and its user: add the parameter username";
