import { AssertionError } from 'node:assert';
import {
  JsonAttributeSerializer,
  MapSessionRepository,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
} from '@nest-session/core';
import type { MapSessionRepositoryOptions } from '@nest-session/core/internal';
import {
  type SessionChange,
  type SessionRecord,
  SessionSnapshot,
  type UpdateSession,
  type WriteReply,
} from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { registerChecks, sessionRepositoryContract, type TestRunner } from '@nest-session/testing/contracts';

LeakGuard.install();

const NO_CHANGES = { attributes: new Map<string, string>(), indexes: new Map<string, string>() };

/** A correct store; the subclasses each make one mistake. Fails while it is down. */
class Correct extends MapSessionRepository {
  isDown = false;
  readonly events: SessionEvent[] = [];
  /** The current id of a rotated session by its old one. */
  protected readonly moved = new Map<string, string>();

  constructor(options: MapSessionRepositoryOptions) {
    const record = async (event: SessionEvent) => this.record(event);
    super({ ...options, dispatcher: { dispatch: record, broadcast: async () => {} } });
  }

  protected record(event: SessionEvent): void {
    this.events.push(event);
  }

  protected override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    if (this.isDown) throw new Error('down');
    return super.load(ids);
  }

  protected override async write(change: SessionChange): Promise<WriteReply> {
    if (this.isDown) throw new Error('down');
    const reply = await super.write(change);
    if (change.kind === 'update' && change.newId && reply.outcome === 'saved') this.moved.set(change.id, change.newId);
    return reply;
  }

  protected override async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    if (this.isDown) throw new Error('down');
    return super.lookUp(indexName, value);
  }
}

class HasNoBounds extends Correct {
  constructor({ clock, ids, indexes }: MapSessionRepositoryOptions) {
    super({ clock, ids, indexes });
  }
}

class OverwritesAtCreation extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    if (change.kind === 'create') await super.write({ kind: 'delete', id: change.id });
    return super.write(change);
  }
}

class CreatesForLateRequests extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change.kind === 'create' ? { ...change, presentedIds: change.presentedIds.slice(1) } : change);
  }
}

class StampsByAnotherClock extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    const reply = await super.write(change);
    return reply.outcome === 'created' ? { ...reply, creationTime: Date.now() } : reply;
  }
}

class TellsTheTimeByAnotherClock extends Correct {
  protected override async readClock(): Promise<number> {
    return Date.now();
  }
}

class TakesLoadsForAccesses extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    for (const id of ids) await super.write({ kind: 'touch', id });
    return super.load(ids);
  }
}

class TellsNoTimeToLive extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    return (await super.load(ids)).map((record) => ({ ...record, timeToLive: undefined }));
  }
}

class BringsBack extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    const reply = await super.write(change);
    if (change.kind !== 'update' || reply.outcome !== 'gone') return reply;
    const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
    await super.write({ ...NO_CHANGES, kind: 'create', id: change.id, presentedIds: [], ...times });
    return { outcome: 'saved' };
  }
}

/** The texts of a record. */
function textsOf(record: SessionRecord | undefined): (readonly [string, string])[] {
  return [...(record?.attributes ?? [])].map(([name, text]) => [name, typeof text === 'object' ? text.read() : text]);
}

class SavesWhole extends Correct {
  readonly #loaded = new Map<string, SessionRecord>();

  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const records = await super.load(ids);
    for (const record of records) if (!this.#loaded.has(record.id)) this.#loaded.set(record.id, record);
    return records;
  }

  override write(change: SessionChange): Promise<WriteReply> {
    if (change.kind !== 'update') return super.write(change);
    const attributes = new Map([...textsOf(this.#loaded.get(change.id)), ...change.attributes]);
    return super.write({ ...change, attributes });
  }
}

/** Reads a session in one step, and writes it back in another one. */
class TakesTwoSteps extends Correct {
  protected async writeWhole(change: UpdateSession): Promise<WriteReply> {
    const [record] = await this.load([change.id]);
    await new Promise((resolve) => setImmediate(resolve));
    return super.write({ ...change, attributes: new Map([...textsOf(record), ...change.attributes]) });
  }
}

class SavesInTwoSteps extends TakesTwoSteps {
  override write(change: SessionChange): Promise<WriteReply> {
    const isPlain = change.kind === 'update' && !change.newId && !change.expected;
    return isPlain ? this.writeWhole(change) : super.write(change);
  }
}

class UpdatesInTwoSteps extends TakesTwoSteps {
  override write(change: SessionChange): Promise<WriteReply> {
    return change.kind === 'update' && change.expected ? this.writeWhole(change) : super.write(change);
  }
}

class TouchesInTwoSteps extends TakesTwoSteps {
  override write(change: SessionChange): Promise<WriteReply> {
    return change.kind === 'touch'
      ? this.writeWhole({ ...NO_CHANGES, ...change, kind: 'update' })
      : super.write(change);
  }
}

class RotatesInTwoSteps extends TakesTwoSteps {
  override write(change: SessionChange): Promise<WriteReply> {
    return change.kind === 'update' && change.newId ? this.writeWhole(change) : super.write(change);
  }
}

class WritesTimesInTwoSteps extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    const [record] = change.kind === 'update' ? await super.load([change.id]) : [];
    if (change.kind !== 'update' || !record || change.maxInactiveInterval === 0) return super.write(change);
    await new Promise((resolve) => setImmediate(resolve));
    const { maxInactiveInterval, absoluteTimeout } = record;
    const times = {
      maxInactiveInterval: change.maxInactiveInterval ?? maxInactiveInterval,
      absoluteTimeout: change.absoluteTimeout ?? absoluteTimeout,
    };
    return super.write(change.id === record.id && !change.newId ? { ...change, ...times } : change);
  }
}

class LoadsAFew extends Correct {
  override load(ids: readonly string[]): Promise<SessionRecord[]> {
    return super.load(ids.slice(0, 50));
  }
}

class TellsTimesAsTexts extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const records = await super.load(ids);
    return records.map((record) => ({ ...record, timeToLive: String(record.timeToLive) as unknown as number }));
  }
}

class LivesForeverWithoutInterval extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const records = await super.load(ids);
    return records.map((record) => (record.maxInactiveInterval < 0 ? { ...record, timeToLive: undefined } : record));
  }
}

class TrimsTexts extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    return (await super.load(ids)).map((record) => {
      const attributes = textsOf(record).map(([name, text]) => [name, text.trim()] as const);
      return { ...record, attributes };
    });
  }
}

class CutsUpdates extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    if (change.kind !== 'update') return super.write(change);
    const cut = (text: string | null) => (text && text.length > 65_535 ? '"too long"' : text);
    const attributes = new Map([...change.attributes].map(([name, text]) => [name, cut(text)]));
    return super.write({ ...change, attributes });
  }
}

class RenewsAlways extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change.kind === 'update' ? { ...change, keepsIdle: false } : change);
  }
}

class RenewsNever extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change.kind === 'update' ? { ...change, keepsIdle: true } : change);
  }
}

class OpensOldIds extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    const records = await super.load(ids.map((id) => this.moved.get(id) ?? id));
    return records.map((record, i) => ({ ...record, id: ids[i] ?? record.id }));
  }
}

class FollowsWithEverything extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write({ ...change, id: this.moved.get(change.id) ?? change.id });
  }
}

class FollowsWithNothing extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    return this.moved.has(change.id) ? { outcome: 'gone' } : super.write(change);
  }
}

class ComparesNothing extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change.kind === 'update' ? { ...change, expected: undefined } : change);
  }
}

class TakesTheSameTextForItsOwn extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    const reply = await super.write(change);
    const isOwn =
      change.kind === 'update' &&
      reply.outcome === 'conflict' &&
      change.expected !== undefined &&
      change.attributes.get(change.expected.name) === reply.current;
    return isOwn ? { outcome: 'saved' } : reply;
  }
}

class LosesTheIndexWithTheId extends Correct {
  override async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    const changed = new Set(this.moved.values());
    return (await super.lookUp(indexName, value)).filter(({ id }) => !changed.has(id));
  }
}

class ForgetsOtherIndexes extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    if (change.kind !== 'update' || change.indexes.size === 0) return super.write(change);
    const others = ['tenant', 'sid'].map((name) => [name, null] as const);
    return super.write({ ...change, indexes: new Map([...others, ...change.indexes]) });
  }
}

class ListsWhatIsOver extends Correct {
  readonly #listed = new Map<string, SessionRecord>();

  override async lookUp(indexName: string, value: string): Promise<SessionRecord[]> {
    for (const record of await super.lookUp(indexName, value)) this.#listed.set(record.id, record);
    return [...this.#listed.values()];
  }
}

class SignsInWhoHasBegun extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(
      change.kind === 'update' || change.kind === 'create' ? { ...change, begunAt: undefined } : change,
    );
  }
}

class RefusesWhoBeginsLater extends Correct {
  override write(change: SessionChange): Promise<WriteReply> {
    const { begunAt } = change.kind === 'update' || change.kind === 'create' ? change : {};
    return super.write(begunAt === undefined ? change : ({ ...change, begunAt: 0 } as SessionChange));
  }
}

class ReportsTwice extends Correct {
  override record(event: SessionEvent): void {
    super.record(event);
    if (event instanceof SessionExpiredEvent) super.record(event);
  }
}

class ReportsNoDeletions extends Correct {
  override record(event: SessionEvent): void {
    if (!(event instanceof SessionDeletedEvent)) super.record(event);
  }
}

class ReportsWithoutData extends Correct {
  override record(event: SessionEvent): void {
    if (!(event instanceof SessionExpiredEvent)) return super.record(event);
    const { sessionId, at } = event;
    const session = SessionSnapshot.empty(sessionId, new JsonAttributeSerializer());
    super.record(new SessionExpiredEvent({ sessionId, at, session }));
  }
}

class IsEmptyWhenItIsDown extends Correct {
  override async load(ids: readonly string[]): Promise<SessionRecord[]> {
    return this.isDown ? [] : super.load(ids);
  }
}

class CollidesWhenItIsDown extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    return this.isDown && change.kind === 'create' ? { outcome: 'collision' } : super.write(change);
  }
}

class WritesAlthoughItFails extends Correct {
  override async write(change: SessionChange): Promise<WriteReply> {
    const wasDown = this.isDown;
    this.isDown = false;
    const reply = await super.write(change);
    this.isDown = wasDown;
    if (wasDown) throw new Error('down');
    return reply;
  }
}

/** A correct store whose clock moves by itself: 2 ms before each load. */
class HasMovingClock extends Correct {
  constructor(private readonly options: MapSessionRepositoryOptions) {
    super(options);
  }

  protected override load(ids: readonly string[]): Promise<SessionRecord[]> {
    (this.options.clock as ManualClock).advance(2);
    return super.load(ids);
  }
}

function checksOf(Store: new (options: MapSessionRepositoryOptions) => Correct, slack?: number) {
  return sessionRepositoryContract({
    offers: ['indexes', 'events', 'nodes', 'outages'],
    ...(slack !== undefined && { slack }),
    open(options) {
      const clock = new ManualClock();
      const repository = new Store({ ...options, clock });
      return {
        repository,
        other: repository,
        advance: (milliseconds) => clock.advance(milliseconds),
        reportExpired: () => repository.endExpired(),
        events: () => repository.events,
        async outage(step) {
          repository.isDown = true;
          await step();
          repository.isDown = false;
        },
      };
    },
  });
}

describe('sessionRepositoryContract', () => {
  it.each([
    [Correct, 0],
    [HasMovingClock, undefined],
  ] as const)('passes for a correct store: %p, with a slack of %p ms', async (Store, slack) => {
    const failures: string[] = [];
    for (const { name, check } of checksOf(Store, slack)) {
      await check().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
    }
    expect(failures).toEqual([]);
  });

  it.each([
    [
      OverwritesAtCreation,
      'creation: draws another id when the first is taken, and leaves the session that has it unchanged',
    ],
    [
      CreatesForLateRequests,
      'creation: refuses a late request that presents an id from just before a rotation, whatever else it presents',
    ],
    [StampsByAnotherClock, 'creation: stamps the creation time by the clock of the store and returns it'],
    [TellsTheTimeByAnotherClock, 'creation: tells the time by the clock that stamps the creation'],
    [TakesLoadsForAccesses, 'loading: does not renew the session'],
    [TellsNoTimeToLive, 'loading: returns for how long a session has been idle, which decides when a touch is due'],
    [BringsBack, 'saving: does not restore a deleted session'],
    [SavesWhole, 'saving: writes only the changes, so that two concurrent requests lose none of them'],
    [SavesInTwoSteps, 'races: two saves of different attributes both take effect'],
    [UpdatesInTwoSteps, 'races: a save and an update of another attribute both take effect'],
    [TouchesInTwoSteps, 'races: a touch keeps a concurrent save'],
    [RotatesInTwoSteps, 'races: a save and a rotation both take effect'],
    [WritesTimesInTwoSteps, 'races: two changes of different timeouts both take effect'],
    [LoadsAFew, 'loading: finds a hundred sessions at once'],
    [TellsTimesAsTexts, 'loading: returns times as whole numbers'],
    [
      LivesForeverWithoutInterval,
      'loading: returns for how long a session has been idle, which decides when a touch is due',
    ],
    [TrimsTexts, 'names and values: returns every serialized text unchanged'],
    [HasNoBounds, 'names and values: refuses what exceeds the bounds that it was given'],
    [CutsUpdates, 'names and values: accepts a value of a megabyte, and a thousand attributes'],
    [RenewsAlways, 'saving: does not renew a session that the request keeps idle'],
    [RenewsNever, 'saving: renews the session'],
    [OpensOldIds, 'rotation: ends the old id for loading at once'],
    [FollowsWithEverything, 'rotation: refuses completely a forwarded save that sets another id'],
    [FollowsWithNothing, 'rotation: forwards attribute changes and touches of requests that loaded the old id'],
    [ComparesNothing, 'attribute update: writes nothing when the stored text is another one, and returns that text'],
    [TakesTheSameTextForItsOwn, 'attribute update: is a conflict also when another request has written the same text'],
    [LosesTheIndexWithTheId, 'index: follows a session through a rotation'],
    [ForgetsOtherIndexes, 'indexed attributes: keep a session listed while other attributes change'],
    [ListsWhatIsOver, 'index: has no ended session, however it ended'],
    [SignsInWhoHasBegun, 'listing: ends all sessions of a principal for requests as well that began before'],
    [
      RefusesWhoBeginsLater,
      'listing: ends all sessions of a principal, who then signs in by requests that begin later',
    ],
    [ReportsTwice, 'events: record an expiry once, with the data of the session'],
    [ReportsNoDeletions, 'events: record a deletion by an interval of 0 once'],
    [ReportsWithoutData, 'events: record an expiry once, with the data of the session'],
    [IsEmptyWhenItIsDown, 'outages: make every call of the repository fail, and never look like a missing session'],
    [CollidesWhenItIsDown, 'outages: make every step of the store fail'],
    [WritesAlthoughItFails, 'outages: leave the session unchanged by a failed save, which can be repeated afterwards'],
  ])('fails for the store %p: %s', async (Store, sentence) => {
    const checks = checksOf(Store, 0).filter(({ group, name }) => `${group}: ${name}`.startsWith(sentence));
    expect(checks).toHaveLength(1);
    await expect(checks[0]!.check()).rejects.toThrow(AssertionError);
  });

  it('lists checks of parts that a store does not offer as skipped, with the reason, and runs the others', () => {
    const registered: string[] = [];
    const it = Object.assign((name: string) => registered.push(name), {
      skip: (name: string) => registered.push(`skipped: ${name}`),
    });
    const runner: TestRunner = {
      describe(name, register) {
        registered.push(name);
        register();
      },
      it,
    };
    const open = () => ({ repository: new MapSessionRepository(), advance: () => {} });
    registerChecks(sessionRepositoryContract({ offers: ['events'], open }), runner);
    expect(registered).toContain('skipped: finds the sessions of a principal, and no others (indexes are not offered)');
    expect(registered).toContain('record nothing but creations, rotations, sign-ins and ends');
    for (const part of ['index', 'events', 'outages', 'races between nodes']) expect(registered).toContain(part);
    expect(registered.filter((name) => name.startsWith('skipped:') && name.includes('(events'))).toEqual([]);
  });
});
