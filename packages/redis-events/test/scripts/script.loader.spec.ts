import { readdirSync, readFileSync } from 'node:fs';
import * as ownAttributes from '../../../session-core/src/session/attribute-names.js';
import { RULES } from '../../../session-cli/src/verification/rules.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { ALL_SCRIPTS, SCRIPT_FOLDERS, scriptOf, sourcesIn } from '../support/all.scripts.js';

const declaring = /\.scripts\.ts$/;
/** The declarations of outcomes: beside the scripts, with the cleanup, and in core for those of a store. */
const declarations = [
  ...SCRIPT_FOLDERS.flatMap((folder) => {
    const files = readdirSync(folder, { encoding: 'utf8', recursive: true });
    return files.filter((name) => declaring.test(name)).map((name) => new URL(name, folder));
  }),
  new URL('../../../redis-events/src/cleanup/due.sweeper.ts', import.meta.url),
  new URL('../../../session-core/src/session/session-change.ts', import.meta.url),
  new URL('../../../session-core/src/events/event-groups.ts', import.meta.url),
  new URL('../../../deadlines/src/deadlines/deadline.store.ts', import.meta.url),
]
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

const SAVES = ['session/save-attributes', 'session/change-session', 'session/rotate-session'];
const SAVE_REPLIES = 'UpdateReply, UnfinishedReply, UnplacedReply, ResealedReply';

/** The types of the outcomes of each script; null for a script without outcomes. */
const REPLY_TYPES: Record<string, string | null> = {
  'session/create-session': 'CreateReply, UnfinishedReply',
  'session/take-over-session': 'TakeOverReply',
  'session/save-attributes': SAVE_REPLIES,
  'session/change-session': SAVE_REPLIES,
  'session/rotate-session': SAVE_REPLIES,
  'session/touch-session': 'TouchOutcome',
  'session/delete-session': 'DeleteReply',
  'session/list-sessions': null,
  'session/end-sessions': null,
  'session/raise-epoch': null,
  'session/end-older-sessions': null,
  'session/finish-epoch': null,
  'session/leave-mark': null,
  'session/leave-revocation-mark': null,
  'session/leave-takeover-mark': null,
  'session/set-aside-index': null,
  'session/claim-expired': 'ClaimOutcome',
  'session/claim-from-sorted-set': 'ClaimOutcome',
  'session/look-at-sessions': null,
  'limits/reserve-place': 'ReserveReply',
  'limits/settle-place': 'SettlePlaceReply',
  'limits/find-sessions': null,
  'delivery/register-handlers': 'RegisterReply',
  'delivery/want-broadcast': 'WishReply',
  'delivery/want-events': 'WantReply',
  'delivery/pick-up-events': null,
  'delivery/acknowledge-events': 'AcknowledgeReply',
  'delivery/retry-or-dead-letter': 'FailReply',
  'delivery/renew-lease': 'RenewReply',
  'delivery/release-events': 'ReleaseReply',
  'delivery/pass-on-event': 'PassOnReply',
  'deadlines/schedule-deadlines': 'ScheduleReply',
  'deadlines/reschedule-deadline': 'RescheduleOutcome',
  'deadlines/cancel-deadline': 'CancelOutcome',
  'deadlines/list-deadlines': null,
  'deadlines/look-at-deadlines': null,
  'deadlines/fire-deadlines': 'FiringFailure',
  'erasure/erase-sessions': 'ErasedSession',
  'erasure/erase-events': null,
  'shared/create-shared-session': 'SharedCreateOutcome',
  'shared/change-shared-session': 'SharedUpdateOutcome',
  'shared/delete-shared-session': 'DeleteReply',
  'shared/look-at-shared-sessions': 'LookOutcome',
  'spring/remove-lost-members': null,
  'spring/renew-session': 'RenewSessionReply',
  'namespace/raise-format': null,
  'namespace/sign-instance': null,
  'stream/take-cleanup-turn': 'TakeCleanupTurnReply',
  'stream/trim-events': 'TrimReply',
  'stream/create-group': 'CreateGroupReply',
  'stream/remove-group': 'RemoveGroupReply',
  'stream/remove-consumer': 'RemoveConsumerReply',
  'stream/count-events': 'CountReply',
  'stream/look-at-groups': null,
  'stream/read-events': 'ReadReply',
  'stream/record-event': null,
  'stream/replay-dead-letter': 'ReplayReply',
  'stream/discard-dead-letter': 'DiscardReply',
  'stream/trim-dead-letters': 'TrimLettersReply',
};

it.each(SCRIPT_FOLDERS)('the embedded scripts of %s are what the .lua files have now', async (folder) => {
  const { LUA_SOURCES } = (await import(`${folder.pathname}lua-sources.ts`)) as { LUA_SOURCES: unknown };
  expect(LUA_SOURCES).toEqual(sourcesIn(folder));
});

it('no two packages have a script or library file of one name', () => {
  const names = SCRIPT_FOLDERS.flatMap((folder) => Object.keys(sourcesIn(folder)));
  expect(names).toHaveLength(new Set(names).size);
});

/** Whether a script replies the rules of the data model that it finds broken. */
const isOfRules = (name: string) => name.startsWith('verification/');

it('the table of reply types names each script', () => {
  expect(Object.keys(REPLY_TYPES).toSorted()).toEqual(ALL_SCRIPTS.filter((name) => !isOfRules(name)).toSorted());
});

it('each rule of the data model is a reply of one script that verifies', () => {
  // They have no other words like these.
  const wordsIn = (source: string) => [...source.matchAll(/'([a-z]+(?:-[a-z]+)+)'/g)].map(([, word]) => word);
  const replies = ALL_SCRIPTS.filter(isOfRules).flatMap((name) => [...new Set(wordsIn(scriptOf(name)))]);
  expect(new Set(replies)).toEqual(new Set(Object.keys(RULES)));
  expect(replies).toHaveLength(Object.keys(RULES).length);
});

function headerOf(source: string): string {
  return /--\[\[([\s\S]*?)\]\]/.exec(source)![1]!;
}

/** The outcomes of which a header tells. */
function documentedOutcomes(header: string): string[] {
  const returns = header.slice(header.indexOf('Returns'));
  return [...returns.matchAll(/^ {4}\{?'([a-z-]+)'/gm)].map((match) => match[1]!);
}

/** `KEYS[3]` and `KEYS[4..]` as their numbers; a variable index counts as the open end. */
function numbers(text: string, array: 'KEYS' | 'ARGV'): number[] {
  const found = [...text.matchAll(new RegExp(`${array}\\[(\\d+)(?:\\.\\.)?\\]`, 'g'))].map((match) => Number(match[1]));
  return [...new Set(found)].sort((a, b) => a - b);
}

/** The outcomes that types declare. */
function outcomesOf(types: string): (string | undefined)[] {
  return types.split(', ').flatMap((each) => {
    const declaration = new RegExp(`(?:type|interface) ${each} ([\\s\\S]+?);\\n`).exec(declarations)![1]!;
    return [...declaration.matchAll(/'([a-z-]+)'/g)].map((match) => match[1]);
  });
}

describe.each(ALL_SCRIPTS)('%s.lua', (name) => {
  const source = scriptOf(name);
  const header = headerOf(source);
  const body = source.replace(/--\[\[[\s\S]*?\]\]/, '').replace(/--.*$/gm, '');
  const openEnd = (array: 'KEYS' | 'ARGV') => {
    const match = new RegExp(`${array}\\[(\\d+)\\.\\.\\]`).exec(header);
    return match ? Number(match[1]) : undefined;
  };

  it('begins with the flags of the script', () => {
    expect(source).toMatch(/^#!lua( flags=(allow-oom|no-writes))?\n/);
  });

  it.each(['KEYS', 'ARGV'] as const)('documents exactly the %s it uses', (array) => {
    const documented = numbers(header, array).filter((each) => each !== openEnd(array));
    expect(documented).toEqual(documented.map((_, i) => i + 1));
    expect(numbers(body, array).filter((each) => each < (openEnd(array) ?? Infinity))).toEqual(documented);
  });

  it('documents exactly the outcomes it returns', () => {
    // Those of the scripts that verify are the rules.
    if (isOfRules(name)) return;
    const returns = header.slice(header.indexOf('Returns'));
    const documented = new Set(documentedOutcomes(header));
    // A script that replies tables has its outcomes there, wherever they are made; any other one returns them itself.
    const isTable = /^ {4}\{'/m.test(returns);
    const own = isTable ? body : body.slice(body.lastIndexOf('local bucket_list') + 1);
    const inTable = /(?<!\()\{ (?:[\w.]+(?: == \w+)? and )?'([a-z-]+)'(?: or '([a-z-]+)')?/g;
    const outcome = isTable ? inTable : /(?:return|\band|\bor) '([a-z-]+)'()/g;
    const returned = [...own.matchAll(outcome)].flatMap(([, one, other]) => [one, other]).filter(Boolean);
    expect(new Set(returned)).toEqual(documented);
  });

  const type = REPLY_TYPES[name];
  if (type === null) {
    it('returns no outcomes', () => expect(header.slice(header.indexOf('Returns'))).not.toMatch(/'[a-z]+'/));
  }
  if (!type) return;

  it(`returns exactly the outcomes of ${type}`, () => {
    const documented = documentedOutcomes(header);
    const typed = outcomesOf(type);
    // A save is made by one of three scripts, each of which has some of the outcomes.
    if (SAVES.includes(name)) expect(typed).toEqual(expect.arrayContaining(documented));
    else expect(new Set(documented)).toEqual(new Set(typed));
  });
});

it('the scripts that save a session have all outcomes of a save together', () => {
  const documented = SAVES.flatMap((name) => {
    const returns = /Returns([\s\S]*?)\]\]/.exec(scriptOf(name))![1]!;
    return [...returns.matchAll(/^ {4}\{?'([a-z-]+)'/gm)].map((match) => match[1]);
  });
  expect(new Set(documented)).toEqual(new Set(outcomesOf(SAVE_REPLIES)));
});

describe('the bucket of a session that ends', () => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open();
  });
  afterAll(() => store.close());

  // The arithmetic of Spring Session, with the vector of its own tests first.
  it.each([
    [1404360000000 + 1_800_000, '1404361860000'],
    [1404361800000, '1404361860000'],
    [1404361800001, '1404361860000'],
    [1404361859999, '1404361860000'],
    [1404361860000, '1404361920000'],
  ])('at %d is %s', async (endsAt, minute) => {
    const script = `${scriptOf('library/keys')}\n${scriptOf('library/bucket-for-end')}\nreturn bucket_for(ARGV[1], ARGV[2])`;
    const reply = await store.client.eval(script, 0, 'prefix', endsAt);
    expect(reply).toBe(minute);
  });
});

it('the count of a session leaves out exactly the attributes of the library itself', () => {
  const source = scriptOf('library/bounds');
  const named = [...source.matchAll(/\['sessionAttr:([^']+)'\] = true/g)].map((match) => match[1]);
  const constants = Object.values(ownAttributes).filter((value) => typeof value === 'string');
  expect(new Set(named)).toEqual(new Set(constants.filter(ownAttributes.isOwnAttribute)));
});
