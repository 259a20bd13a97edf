import { IndexedSessionRepository, SessionStoreError } from '@nest-session/core';
import type { SessionChange, SessionIds, SessionRecord, WriteReply } from '@nest-session/core/store';
import fc from 'fast-check';
import type { Node } from './modelled.store.js';
import { RequestEdits } from './request.edits.js';
import type { SessionModel } from './session.model.js';

/** The repository of one request on one instance: each outcome of the store is compared with the model. */
export class ComparedRepository extends IndexedSessionRepository {
  readonly edits = new RequestEdits();
  /** Whether the reply to its next change is lost. */
  losesReply = false;

  constructor(
    private readonly node: Node,
    private readonly model: SessionModel,
    ids: SessionIds,
    private readonly say: (what: string, reply: string) => void,
  ) {
    super({ ids });
  }

  protected async load(ids: readonly string[]): Promise<readonly SessionRecord[]> {
    const records = await this.node.steps.load(ids);
    this.say(`load ${ids.join(', ')}`, records.length > 0 ? records.map(shown).join(' and ') : 'nothing');
    this.model.expectLoaded(ids, records);
    return records;
  }

  protected async write(change: SessionChange): Promise<WriteReply> {
    const reply = await this.node.steps.write(change);
    const isLost = this.losesReply && this.node.losesReplies;
    this.losesReply = false;
    this.say(shown(change), `${shown(reply)}${isLost ? ', which is lost' : ''}`);
    // No request lasts that long.
    if (change.kind === 'create') fc.pre(!this.model.isForgotten(change.id));
    this.model.expectReply(change, reply);
    if ('attributes' in change) this.edits.expectIn(change);
    if (isLost) {
      this.edits.loseReply();
      throw new LostReply('The reply was lost');
    }
    const isDone = ['created', 'saved', 'touched', 'deleted', 'forwarded'].includes(reply.outcome);
    if (isDone && 'attributes' in change) this.edits.written(change);
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
