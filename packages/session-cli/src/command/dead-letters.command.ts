import { shownText } from '@nest-session/core/internal';
import { redisTime } from '@nest-session/redis-events/internal';
import type { CommandCall, ExitCode } from './command.js';
import { columns, counted, shownTime } from './shown.js';
import { type OpenStore, shownExample, withStore, WRITES } from './store-access.js';
import { shownEvent, storeEvents } from './store-content.js';
import { UsageError, wholeNumber } from './usage.error.js';

const ALL = 'all';
const MOST_LEFT = 10_000;

export function run(call: CommandCall): Promise<ExitCode> {
  const { replay, discard, limit, after } = call.values;
  if (replay === undefined && discard === undefined) return list(call);
  if (replay !== undefined && discard !== undefined) throw new UsageError('Give either --replay or --discard.');
  // With one of them, `all` is meant to be some of the dead letters.
  if (limit !== undefined || after !== undefined)
    throw new UsageError('--limit and --after are for the list: no dead letter was replayed or discarded.');
  if (replay !== undefined) return act(call, (store) => replayed(call, store, replay));
  if (!call.flags.has('yes')) throw new UsageError('A discarded event is never handled. Add --yes to discard it.');
  return act(call, (store) => discarded(call, store, discard!));
}

function list(call: CommandCall): Promise<ExitCode> {
  const { after, limit = '100' } = call.values;
  const page = { limit: wholeNumber('limit', limit, { atLeast: 1 }), ...(after !== undefined && { after }) };
  return withStore(call, async (store) => {
    const letters = await storeEvents(store)
      .groups.deadLetters({ ...filterOf(call), ...page })
      .catch((error: unknown) => {
        throw error instanceof RangeError ? new UsageError('--after must be the id of a dead letter.') : error;
      });
    const told = letters.map(({ member, ...letter }) => {
      return { ...letter, member: member === undefined ? undefined : shownExample(member, store.shownId) };
    });
    const titles = ['ID', 'AT', 'GROUP', 'HANDLER', 'ATTEMPTS', 'EVENT', 'REASON'];
    const rows = told.map((each) => [
      each.id,
      shownTime(each.at),
      shownText(each.group ?? '-'),
      shownText(each.handler ?? '-'),
      each.attempts,
      each.event ? shownEvent(each.event) : shownText(each.member ?? '-'),
      JSON.stringify(each.reason),
    ]);
    return call.output.report({ deadLetters: told }, columns(titles, rows, 'There are no dead letters.'));
  });
}

type Outcome = readonly [word: string, count: number, left?: number];

async function act(call: CommandCall, work: (store: OpenStore) => Promise<Outcome>): Promise<ExitCode> {
  const [word, count, left = 0] = await withStore(call, work, WRITES);
  const lines = [`${counted(count, 'dead letter')} ${word}.`];
  if (left > 0)
    lines.push(
      `${counted(left, 'dead letter')} left: the group does not exist any more, or it is no event. Start an instance of the ` +
        'group, or discard them.',
    );
  return call.output.report({ [word]: count, ...(left > 0 && { left }) }, lines, left > 0 ? 2 : 0);
}

async function replayed(call: CommandCall, store: OpenStore, id: string): Promise<Outcome> {
  const { groups } = storeEvents(store);
  if (id === ALL) {
    const began = Math.min(...(await store.connection.runInAll({ all: [...store.partitions.all] }, redisTime)));
    const count = await groups.replayAll(filterOf(call));
    // Those that were replayed may have failed once more.
    const left = await groups.deadLetters({ ...filterOf(call), limit: MOST_LEFT });
    return ['replayed', count, left.filter(({ at }) => at < began).length];
  }
  const reply = await groups.replay(id);
  if (reply === 'gone') throw new UsageError(`There is no dead letter ${JSON.stringify(id)}.`);
  if (reply === 'orphaned') throw new UsageError('Its group does not exist any more. Start an instance of it first.');
  if (reply === 'foreign') throw new UsageError('It is no event, so no handler can take it. Discard it instead.');
  return ['replayed', 1];
}

async function discarded(call: CommandCall, store: OpenStore, id: string): Promise<Outcome> {
  const { groups } = storeEvents(store);
  if (id === ALL) return ['discarded', await groups.discardAll(filterOf(call))];
  if (await groups.discard(id)) return ['discarded', 1];
  throw new UsageError(`There is no dead letter ${JSON.stringify(id)}.`);
}

function filterOf({ values: { group } }: CommandCall): { group?: string } {
  return group === undefined ? {} : { group };
}
