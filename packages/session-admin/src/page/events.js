import { act, read, remove, rights } from './api.js';
import {
  $,
  attempt,
  bar,
  button,
  card,
  confirmed,
  facts,
  fill,
  foreign,
  instant,
  json,
  make,
  onPress,
  removeCard,
  tell,
} from './dom.js';
import { bytes, count, duration } from './words.js';

const ABOUT = { sessions: 'events of sessions', deadlines: 'deadlines that come' };

export async function showGroups() {
  const { groups } = await read('groups');
  fill('group-list', groups.map(cardOfGroup), 'There are no groups.');
}

function cardOfGroup(group) {
  const { name, of, lag, oldestUnread, pending, retrying, dropped, lostDeadLetters, consumers } = group;
  const unread = oldestUnread ? [`${count(lag, 'event')}, the oldest from `, instant(oldestUnread)] : 'nothing';
  const lost = `${count(dropped, 'event')}, ${count(lostDeadLetters, 'dead letter')}`;
  const label = `Remove: group ${name}`;
  return card(
    JSON.stringify([of, name]),
    make('h3', {}, foreign(name)),
    facts([
      ['Handles', ABOUT[of]],
      ['Still to read', unread],
      ['In work', count(pending, 'event')],
      ['Waits for a retry', count(retrying, 'event')],
      ['Lost', dropped + lostDeadLetters === 0 ? 'nothing' : lost],
      ['Instances', consumers.length === 0 ? 'none' : make('ul', {}, ...consumers.map(instanceOf))],
    ]),
    bar(rights.removeGroup && button('Remove', () => removeGroup(group), { className: 'danger', label })),
  );
}

function instanceOf({ name, pending, idle }) {
  const heard = idle < 1 ? 'now' : `${duration(idle)} ago`;
  return make('li', {}, foreign(name), `: last heard of ${heard}, ${count(pending, 'event')} in work`);
}

async function removeGroup({ name, of }) {
  const text =
    'Events that it has not handled are not kept for it any more. Remove only a group that no instance uses.';
  if (!(await confirmed(['Remove the group ', foreign(name), '?'], text, 'Remove it'))) return;
  await remove('groups', { of, name });
  tell('The group is removed.');
  await showGroups();
}

const WHAT = {
  created: 'A session was created',
  deleted: 'A session was ended',
  expired: 'A session expired',
  'id-changed': 'A session got a new id',
  'signed-in': 'A user signed in',
  deadline: 'A deadline came',
};

/** Milliseconds after which a handler may have failed once more. */
const LOOKS = [1500, 5000, 15_000];

let next = [];

export async function showLetters() {
  const page = await read('dead-letters');
  fill('letter-list', page.deadLetters.map(cardOfLetter), 'There are none.');
  goOn(page.next);
  const isEmpty = page.deadLetters.length === 0;
  $('replay-all').hidden = isEmpty || !rights.replay;
  $('discard-all').hidden = isEmpty || !rights.discard;
}

export function startLetters() {
  onPress($('more-letters'), showMore);
  onPress($('replay-all'), replayAll);
  onPress($('discard-all'), discardAll);
}

async function showMore() {
  const wanted = next;
  const pages = await Promise.all(wanted.map((query) => read('dead-letters', query)));
  // The list may have been shown anew meanwhile.
  if (next !== wanted) return;
  $('letter-list').append(...pages.flatMap(({ deadLetters }) => deadLetters).map(cardOfLetter));
  goOn(pages.flatMap((page) => page.next));
}

function goOn(following) {
  next = following;
  $('more-letters').hidden = next.length === 0;
}

function cardOfLetter(letter) {
  const { id, time, reason, group, handler, attempts, event, omittedBytes, canBeReplayed } = letter;
  const what = event ? (WHAT[event.type] ?? event.type) : 'Something that is no event';
  const data = event?.value === undefined ? undefined : json(event.value);
  return card(
    id,
    make('h3', {}, foreign(what)),
    facts([
      ['Given up', instant(time)],
      ['Reason', make('span', { className: 'reason' }, foreign(reason))],
      ['User', event?.principalName && foreign(event.principalName)],
      ['Session id', event?.sessionId && make('code', { textContent: event.sessionId })],
      ['Kind', event?.name && foreign(event.name)],
      ['Key', event?.key && foreign(event.key)],
      ['Due', event?.dueTime && instant(event.dueTime)],
      ['Data', event?.isUnreadable ? 'cannot be read' : data],
      ['Data left out', omittedBytes && bytes(omittedBytes)],
      ['Handler', handler && foreign(handler)],
      ['Group', group && foreign(group)],
      ['Attempts', attempts > 0 ? String(attempts) : undefined],
    ]),
    bar(
      rights.replay && canBeReplayed && button('Replay', () => replay(id), { label: `Replay: ${what}` }),
      rights.discard && button('Discard', () => discard(id), { className: 'danger', label: `Discard: ${what}` }),
    ),
  );
}

async function replay(id) {
  await act(`dead-letters/${encodeURIComponent(id)}/replay`);
  removeCard('letter-list', id);
  tell('The application handles it again.');
  for (const after of LOOKS) setTimeout(() => void attempt(lookAgain), after);
}

/** A letter that has failed once more is there again, unless somebody reads on or is asked something. */
async function lookAgain() {
  const isBusy = $('letters').hidden || $('dialog').open || $('letter-list').contains(document.activeElement);
  if (!isBusy) await showLetters();
}

async function discard(id) {
  const text = 'Nobody ever handles this event then. This cannot be undone.';
  if (!(await confirmed('Discard this dead letter?', text, 'Discard it'))) return;
  await remove(`dead-letters/${encodeURIComponent(id)}`);
  removeCard('letter-list', id);
  tell('The dead letter is discarded.');
}

async function replayAll() {
  const text = 'The application handles all of them again, also those that this page does not show yet.';
  if (!(await confirmed('Replay all dead letters?', text, 'Replay all'))) return;
  const { replayed } = await act('dead-letters/replay');
  tell(`${count(replayed, 'dead letter')} replayed.`);
  await showLetters();
}

async function discardAll() {
  const text =
    'Nobody ever handles these events then, also those that this page does not show yet. This cannot be undone.';
  if (!(await confirmed('Discard all dead letters?', text, 'Discard all'))) return;
  const { discarded } = await remove('dead-letters');
  tell(`${count(discarded, 'dead letter')} discarded.`);
  await showLetters();
}
