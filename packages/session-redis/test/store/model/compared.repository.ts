import { IndexedSessionRepository, type SessionInfo, SessionStoreError } from '@nest-session/core';
import { type MaxSessionsOptions, type SessionIds, SessionIndexes } from '@nest-session/core/internal';
import type { SessionChange, SessionRecord, WriteReply } from '@nest-session/core/store';
import fc from 'fast-check';
import type { Node } from './modelled.store.js';
import { RequestEdits } from './request.edits.js';
import type { SessionModel, SignInChange } from './session.model.js';

/** An attribute, and the index of its values. */
export const TEAM = 'team';

const indexes = new SessionIndexes({ [TEAM]: ({ getAttribute }) => getAttribute<string>(TEAM) });

/** The repository of one request on one instance: each outcome of the store is compared with the model. */
export class ComparedRepository extends IndexedSessionRepository {
  readonly edits = new RequestEdits();
  readonly #isLimited: boolean;
  /** Whether the reply to its next change is lost. */
  losesReply = false;

  constructor(
    private readonly node: Node,
    private readonly model: SessionModel,
    ids: SessionIds,
    private readonly say: (what: string, reply: string) => void,
    maxSessions?: Required<MaxSessionsOptions>,
  ) {
    super({ ids, indexes, maxSessions });
    this.#isLimited = maxSessions !== undefined;
  }

  protected async load(ids: readonly string[]): Promise<readonly SessionRecord[]> {
    const records = await this.node.steps.load(ids);
    this.say(`load ${ids.join(', ')}`, records.length > 0 ? records.map(shown).join(' and ') : 'nothing');
    this.model.expectLoaded(ids, records);
    return records;
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    const reply = await (this.#isStepwise(change) ? this.#signIn(change) : this.node.steps.write(change));
    const isLost = this.losesReply && this.node.losesReplies;
    this.losesReply = false;
    this.say(shown(change), `${shown(reply)}${isLost ? ', which is lost' : ''}`);
    this.#expectInTime(change);
    if (!this.#isStepwise(change)) this.model.expectReply(change, reply);
    if ('attributes' in change) this.edits.expectIn(change);
    if (isLost) {
      this.edits.loseReply();
      throw new LostReply('The reply was lost');
    }
    const isDone = ['created', 'saved', 'touched', 'deleted', 'forwarded'].includes(reply.outcome);
    if (isDone && 'attributes' in change) this.edits.written(change);
    return reply;
  }

  /** No request lasts so long that nothing is left of the session that it has created. */
  #expectInTime(change: SessionChange): void {
    if (change.kind === 'create') fc.pre(!this.model.isForgotten(change.id));
  }

  #isStepwise(change: SessionChange): change is SignInChange {
    if (!this.#isLimited || !this.node.signsInStepwise) return false;
    if (change.kind !== 'create' && change.kind !== 'update') return false;
    if (!change.limit) return change.kind === 'update' && change.newId !== undefined;
    return change.maxInactiveInterval !== 0 && change.absoluteTimeout !== 0;
  }

  async #signIn(change: SignInChange): Promise<WriteReply> {
    this.say(shown(change), 'begun');
    const expectReply = this.model.signIn(change);
    const reply = await this.node.steps.write(change);
    expectReply(reply);
    return reply;
  }

  protected async lookUp(indexName: string, value: string): Promise<readonly SessionRecord[]> {
    const compare = this.model.lookUp(indexName, value);
    this.say(`look up ${value}`, 'begun');
    const records = await this.node.steps.lookUp(indexName, value);
    this.say(`look up ${value}`, records.map(({ id }) => id).join(' and ') || 'nothing');
    compare(records);
    return records;
  }

  protected override async *list(indexName: string, value: string): AsyncIterable<SessionInfo> {
    const compare = this.model.lookUp(indexName, value);
    this.say(`list ${value}`, 'begun');
    const infos = await this.node.steps.listAll(indexName, value);
    this.say(`list ${value}`, infos.map(({ id }) => id).join(' and ') || 'nothing');
    compare(infos, { mayRepeat: true });
    yield* infos;
  }

  protected override async endListed(indexName: string, value: string, except: readonly string[]): Promise<number> {
    this.say(`end all of ${value} but ${except.join(', ')}`, 'begun');
    const expectEnded = this.model.endAll(indexName, value, except);
    const ended = await this.node.steps.endListed(indexName, value, except);
    expectEnded();
    this.say(`end all of ${value}`, `${ended}`);
    return ended;
  }

  protected override count(indexName: string, value: string): Promise<number> {
    return this.node.steps.count(indexName, value);
  }

  protected override async endEvery(): Promise<void> {
    await this.node.endEvery(() => this.model.endEvery());
    this.say('end every session', 'done');
  }

  protected override mayReplace(id: string, replaced: string): boolean {
    return this.node.mayReplace(id, replaced);
  }
}

/** The change was made, but the request does not know. */
export class LostReply extends SessionStoreError {}

/** A short description: unset fields are left out. */
function shown(what: object): string {
  return JSON.stringify(what, (_, value: unknown) => {
    if (value instanceof Map) return value.size > 0 ? Object.fromEntries(value) : undefined;
    return Array.isArray(value) && value.length === 0 ? undefined : value;
  });
}
