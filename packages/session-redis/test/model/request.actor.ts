import { PRINCIPAL_NAME_INDEX_NAME, type Session, TrackedSession } from '@nest-session/core';
import type { Act, RequestPlan } from './actors.js';
import { type ComparedRepository, LostAnswer } from './compared.repository.js';
import type { SessionModel } from './session.model.js';

/** What has the cookie: the id stands for the token. */
export interface Browser {
  cookie?: string | undefined;
}

/** A request does what it is planned to, as the library and a handler together would. */
export class RequestActor {
  #session!: Session;
  #hasLostAnswer = false;
  /** The texts that are to be there when it has saved. */
  readonly #toSave = new Map<string, string>();

  constructor(
    private readonly plan: RequestPlan,
    private readonly browsers: readonly Browser[],
    private readonly repository: ComparedRepository,
    private readonly model: SessionModel,
  ) {}

  async run(): Promise<void> {
    const presented = this.browsers.map(({ cookie }) => cookie).filter((cookie) => cookie !== undefined);
    const found = await this.repository.findByIds(presented);
    this.#session = found.find((session) => session !== null) ?? this.repository.createSession(presented);
    for (const act of this.plan.acts) {
      await this.#unlessLost(this.#act(act));
      if (this.#isDeleted || act.does === 'invalidate') return this.#answer();
    }
    await this.#unlessLost(this.#save());
    this.#answer();
  }

  /** The cookie follows what the request itself has done. */
  #answer(): void {
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
      case 'set principal':
        return this.#set(PRINCIPAL_NAME_INDEX_NAME, act.to);
      case 'update principal':
        return this.#update(PRINCIPAL_NAME_INDEX_NAME, () => act.to);
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
        this.repository.losesAnswer = act.losesAnswer;
        return this.#save();
      case 'increment':
        this.repository.losesAnswer = act.losesAnswer;
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
    }
  }

  #set(name: string, value: unknown): void {
    this.#session.setAttribute(name, value);
    const text = this.#note(name, value);
    // What is removed may not have been there.
    if (text === null) this.#toSave.delete(name);
    else this.#toSave.set(name, text);
  }

  /** What the request may write from now on. */
  #note(name: string, value: unknown): string | null {
    const text = value === null ? null : JSON.stringify(value);
    this.repository.edits.set(name, [...(this.repository.edits.get(name) ?? []), text]);
    return text;
  }

  async #update(name: string, update: (current: unknown) => unknown): Promise<void> {
    await this.#session.updateAttribute(name, (current) => {
      // Written at once, and then others may update it as well.
      this.#toSave.delete(name);
      const next = update(current);
      this.#note(name, next);
      return next;
    });
  }

  async #save(): Promise<void> {
    const outcome = await this.#session.save();
    this.repository.losesAnswer = false;
    if (outcome === 'gone' || this.#session.isNew) return;
    // What was not answered was done then, perhaps, and others may have changed it since.
    if (!this.#hasLostAnswer) this.model.expectTexts(this.#session.id, this.#toSave);
    this.#forget();
  }

  #take(other: Session | null | undefined): void {
    if (!other) return;
    this.#session = other;
    this.#forget();
  }

  #forget(): void {
    this.repository.edits.clear();
    this.#toSave.clear();
  }

  async #unlessLost(done: Promise<void>): Promise<void> {
    await done.catch((error: unknown) => {
      if (!(error instanceof LostAnswer)) throw error;
      this.#hasLostAnswer = true;
    });
  }
}
