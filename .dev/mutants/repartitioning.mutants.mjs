const bySpec = (test) => ({ spec: 'repartition.spec.ts', test });
const MOVES = 'with the ends of sessions in buckets everything moves from 4 to 1 partitions, and back';
const CONTINUES =
  'with the ends of sessions in buckets from 3 to 2 partitions, it continues wherever it was interrupted';

/** Mistakes in the move of sessions to other partitions. */
export const repartitioning = [
  {
    mistake: 'A key is removed before it has been copied',
    in: 'KeyRepartition.#moveWhole',
    code: `if (data && end !== NO_KEY) {`,
    instead: `await this.client.unlink(key);
    if (data && end !== NO_KEY) {`,
    killedBy: bySpec(CONTINUES),
  },
  {
    mistake: 'A session gets its time to live anew',
    in: 'KeyRepartition.#moveWhole',
    code: `Math.max(end, 0), data, 'REPLACE', 'ABSTTL'`,
    instead: `Math.max(end - Date.now() + 60_000, 0), data, 'REPLACE'`,
    killedBy: bySpec(MOVES),
  },
  {
    mistake: 'A copy that was interrupted is begun beside what it has copied',
    in: 'RepartitionRun.#do',
    code: `await this.#forEach(this.to, ALL_ASIDE, isAside, ({ key }) => this.client.unlink(key));`,
    instead: ``,
    killedBy: bySpec(CONTINUES),
  },
  {
    mistake: 'The events of the old partitions are removed before all are copied',
    in: 'EventCopy.run',
    code: `await this.#copyEvents(report);`,
    instead: `await this.#copyEvents(report);
    for (const { events } of this.from.all) await this.client.unlink(events);`,
    killedBy: bySpec(CONTINUES),
  },
  {
    mistake: 'A group skips what it has not read of one partition, because it has read later events of another one',
    in: 'GroupCopy.note',
    code: `for (const skipped of copies.unread) copies.pending.push([skipped, NEVER_DELIVERED]);`,
    instead: ``,
    killedBy: bySpec(MOVES),
  },
  {
    mistake: 'What is known of the failures of an event is lost',
    in: 'GroupCopy.write',
    code: `record !== undefined && this.client.hset(aside(keys, keys.failing(name)), position, record)`,
    instead: ``,
    killedBy: bySpec(MOVES),
  },
  {
    mistake: 'A revocation mark moves to one partition only',
    in: 'KeyRepartition.#moveRevocation',
    code: `inBatches(this.to.all, KEYS_AT_ONCE, async (to)`,
    instead: `inBatches(this.to.all.slice(0, 1), KEYS_AT_ONCE, async (to)`,
    killedBy: bySpec('a revocation mark and an epoch are in every partition afterwards'),
  },
  {
    mistake: 'The move begins while an instance is alive',
    in: 'RepartitionRun.#refuseInstances',
    code: `if (names.length === 0) return;`,
    instead: `if (names.length >= 0) return;`,
    killedBy: bySpec(
      'is refused while an instance is alive, also one without handlers, and then leaves everything as it was',
    ),
  },
  {
    mistake: 'An instance starts while sessions move',
    in: 'checkStore',
    code: 'if (record !== `${count}`)',
    instead: 'if (!record?.split(`>`).includes(`${count}`))',
    killedBy: bySpec('no instance starts until it has finished, and only one with the new number then'),
  },
  {
    mistake: 'A ledger is kept with one partition, where sign-ins do not use it',
    in: 'KeyRepartition.#move',
    code: `this.to.count === 1`,
    instead: `this.to.count < 1`,
    killedBy: bySpec(
      'a ledger moves to the partition of its principal, and is dropped with one partition, which has none',
    ),
  },
];
