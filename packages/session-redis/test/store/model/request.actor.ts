import { PRINCIPAL_NAME_INDEX_NAME, type Session, SessionGoneError, TooManySessionsError } from '@nest-session/core';
import { TrackedSession, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { Act, RequestPlan } from './actors.js';
import { type ComparedRepository, LostReply, TEAM } from './compared.repository.js';

/** The holder of the cookie: the id stands for the token. */
export interface Browser {
  cookie?: string | undefined;
}

// The last one: a sign-in, or a new session, that lost against another request.
const UNSAVED = [LostReply, TooManySessionsError, SessionGoneError];

/** Acts as the library and a handler together would. */
export class RequestActor {
  #session!: Session;

  constructor(
    private readonly plan: RequestPlan,
    private readonly browsers: readonly Browser[],
    private readonly repository: ComparedRepository,
  ) {}

  async run(): Promise<void> {
    const presented = this.browsers.map(({ cookie }) => cookie).filter((cookie) => cookie !== undefined);
    const found = await this.repository.findByIds(presented);
    this.#take(found.find((session) => session !== null) ?? this.repository.createSession(presented));
    for (const act of this.plan.acts) {
      await this.#unlessUnsaved(this.#act(act));
      if (this.#isDeleted || act.does === 'invalidate') return this.#commit();
    }
    await this.#unlessUnsaved(this.#save());
    this.#commit();
  }

  /** The cookie follows the changes of the request itself. */
  #commit(): void {
    const [browser] = this.browsers;
    if (this.#isDeleted) browser!.cookie = undefined;
    else if (TrackedSession.of(this.#session).tokenToSend) browser!.cookie = this.#session.id;
  }

  get #isDeleted(): boolean {
    return TrackedSession.of(this.#session).isDeleted;
  }

  async #act(act: Act): Promise<void> {
    const session = this.#session;
    switch (act.does) {
      case 'set':
        return this.#set(act.name, act.to);
      case 'set team':
        return this.#set(TEAM, act.to);
      case 'set principal':
        session.principalName = act.to ?? undefined;
        return this.repository.edits.set(PRINCIPAL_ATTRIBUTE, act.to);
      case 'sign in':
        if (session.isGone) return;
        session.signIn(act.to, { keep: act.keep });
        this.#leave();
        return this.repository.edits.set(PRINCIPAL_ATTRIBUTE, act.to);
      case 'set interval':
        session.maxInactiveInterval = act.to;
        return;
      case 'set absoluteTimeout':
        session.absoluteTimeout = act.to;
        return;
      case 'rotate':
        return void session.changeSessionId();
      case 'keep idle':
        return TrackedSession.of(session).keepIdle();
      case 'invalidate':
        session.invalidate();
        return this.#save();
      case 'save':
        this.repository.losesReply = act.losesReply;
        return this.#save();
      case 'increment':
        this.repository.losesReply = act.losesReply;
        return this.#update('count', (count) => Number(count ?? 0) + 1);
      case 'touch':
        return void (await this.repository.touch(session));
      case 'load again':
        return this.#take(await this.repository.findById(session.id));
      case 'take over a session of':
        return this.#take((await this.repository.findByPrincipalName(act.principal))[0]);
      case 'delete by id':
        return void (await this.repository.deleteById(session.id));
      case 'delete all of':
        for (const { id } of await this.repository.findByPrincipalName(act.principal)) {
          await this.repository.deleteById(id);
        }
        return;
      case 'end one of':
        for await (const { id } of this.repository.listByIndex(PRINCIPAL_NAME_INDEX_NAME, act.principal)) {
          return void (await this.repository.deleteIfListed(id, PRINCIPAL_NAME_INDEX_NAME, act.of));
        }
        return;
      case 'end all of':
        return this.#endAll(act.principal, act.exceptOwn);
      case 'end every session':
        return this.repository.endEverySession();
    }
  }

  async #endAll(principal: string, exceptOwn: boolean): Promise<void> {
    const { storedId = '', id } = TrackedSession.of(this.#session);
    await this.repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, principal, exceptOwn ? [storedId, id] : []);
  }

  #set(name: string, value: unknown): void {
    this.#session.setAttribute(name, value);
    this.repository.edits.set(name, value);
  }

  async #update(name: string, update: (current: unknown) => unknown): Promise<void> {
    await this.#session.updateAttribute(name, (current) => {
      const next = update(current);
      this.repository.edits.update(name, next);
      return next;
    });
  }

  async #save(): Promise<void> {
    await this.#session.save();
    this.repository.losesReply = false;
  }

  #take(other: Session | null | undefined): void {
    if (!other) return;
    this.#session = other;
    // An attribute that was only read is not to be written.
    this.repository.edits.begin(other.attributeNames.map((name) => [name, other.getAttribute(name)]));
  }

  /** A sign-in has left behind what the session no longer shows. */
  #leave(): void {
    const kept: readonly string[] = this.#session.attributeNames;
    this.repository.edits.leave((name) => !kept.includes(name));
  }

  async #unlessUnsaved(done: Promise<void>): Promise<void> {
    await done.catch((error: unknown) => {
      this.repository.losesReply = false;
      if (!UNSAVED.some((type) => error instanceof type)) throw error;
    });
  }
}
