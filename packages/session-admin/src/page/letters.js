import { act, read, remove } from './api.js';
import { $, button, confirmed, facts, foreign, instant, make, onPress, removeCard, tell } from './dom.js';
import { bytes, count, when } from './words.js';

const WHAT = {
  created: 'A session was created',
  deleted: 'A session was ended',
  expired: 'A session expired',
  'id-changed': 'A session got a new id',
  'signed-in': 'A user signed in',
  deadline: 'A deadline came',
};

let next = [];
let rights = {};

export async function showLetters(_query, allowed) {
  rights = allowed;
  const page = await read('dead-letters');
  $('letter-list').replaceChildren();
  add(page);
  const isEmpty = page.deadLetters.length === 0;
  if (isEmpty) $('letter-list').append(make('li', { className: 'card', textContent: 'There are none.' }));
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
  add({ deadLetters: pages.flatMap(({ deadLetters }) => deadLetters), next: pages.flatMap((page) => page.next) });
}

function add(page) {
  next = page.next;
  $('more-letters').hidden = next.length === 0;
  $('letter-list').append(...page.deadLetters.map(card));
}

function card(letter) {
  const { id, time, reason, group, handler, attempts, event, omittedBytes, canBeReplayed } = letter;
  const what = event ? (WHAT[event.type] ?? event.type) : 'Something that is no event';
  const element = make('li', { className: 'card' });
  element.dataset.id = id;
  element.append(
    make('h3', {}, foreign(what)),
    facts([
      ['Given up', instant(time, when)],
      ['Reason', make('span', { className: 'reason' }, foreign(reason))],
      ['User', event?.principalName && foreign(event.principalName)],
      ['Session id', event?.sessionId && make('code', { textContent: event.sessionId })],
      ['Kind', event?.name && foreign(event.name)],
      ['Key', event?.key && foreign(event.key)],
      ['Due', event?.dueTime && instant(event.dueTime, when)],
      ['Data', dataOf(event)],
      ['Data left out', omittedBytes && bytes(omittedBytes)],
      ['Handler', handler && foreign(handler)],
      ['Group', group && foreign(group)],
      ['Attempts', attempts > 0 ? String(attempts) : undefined],
    ]),
  );
  const actions = make('div', { className: 'bar' });
  if (rights.replay && canBeReplayed) {
    actions.append(button('Replay', () => replay(id), { label: `Replay: ${what}` }));
  }
  if (rights.discard) {
    actions.append(button('Discard', () => discard(id), { className: 'danger', label: `Discard: ${what}` }));
  }
  element.append(actions);
  return element;
}

function dataOf(event) {
  if (event?.isUnreadable) return 'cannot be read';
  return event?.value === undefined
    ? undefined
    : make('pre', { tabIndex: 0, textContent: JSON.stringify(event.value, null, 2) });
}

async function replay(id) {
  await act(`dead-letters/${encodeURIComponent(id)}/replay`);
  removeCard('letter-list', id);
  tell('The application handles it again.');
}

async function discard(id) {
  const text = 'Nobody ever handles this event then. This cannot be undone.';
  if (!(await confirmed({ title: 'Discard this dead letter?', text, yes: 'Discard it' }))) return;
  await remove(`dead-letters/${encodeURIComponent(id)}`);
  removeCard('letter-list', id);
  tell('The dead letter is discarded.');
}

async function replayAll() {
  const text = 'The application handles all of them again, also those that this page does not show yet.';
  if (!(await confirmed({ title: 'Replay all dead letters?', text, yes: 'Replay all' }))) return;
  const { replayed } = await act('dead-letters/replay');
  tell(`${count(replayed, 'dead letter')} replayed.`);
  await showLetters(undefined, rights);
}

async function discardAll() {
  const text =
    'Nobody ever handles these events then, also those that this page does not show yet. This cannot be undone.';
  if (!(await confirmed({ title: 'Discard all dead letters?', text, yes: 'Discard all' }))) return;
  const { discarded } = await remove('dead-letters');
  tell(`${count(discarded, 'dead letter')} discarded.`);
  await showLetters(undefined, rights);
}
