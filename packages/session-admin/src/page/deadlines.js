import { read, remove, rights } from './api.js';
import {
  $,
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

let shown;

export async function showDeadlines(query) {
  const { deadlines } = await read('deadlines');
  fill('name-list', deadlines.map(cardOfName), 'No deadline waits.');
  const name = query.get('name');
  $('waiting').hidden = !name;
  if (name) await list({ name });
}

export function startDeadlines() {
  onPress($('more-deadlines'), () => list(shown, shown.next));
}

function cardOfName({ name, count: waiting, overdue }) {
  const href = `#deadlines?${new URLSearchParams({ name })}`;
  return card(
    name,
    make('h3', {}, foreign(name)),
    facts([
      ['Waiting', count(waiting, 'deadline')],
      ['Late', overdue ? `the first one is due for ${duration(overdue)}` : 'none'],
    ]),
    bar(make('a', { href, textContent: 'Show them', ariaLabel: `Show them: deadlines ${name}` })),
  );
}

async function list(wanted, after) {
  shown = wanted;
  // First: a heading without a text tells nobody what is being loaded.
  $('waiting-title').replaceChildren('Waiting: ', foreign(wanted.name));
  const query = { name: wanted.name, afterKey: after?.key, afterDueAt: after?.dueAt };
  const { deadlines, next } = await read('deadlines', query);
  if (shown !== wanted) return;
  wanted.next = next;
  if (!after) $('deadline-list').replaceChildren();
  $('deadline-list').append(...deadlines.map((each) => cardOf(wanted.name, each)));
  $('more-deadlines').hidden = next === null;
}

function cardOf(name, { key, dueTime, scheduledTime, size, value, isUnreadable }) {
  const data = value === undefined ? bytes(size) : json(value);
  const options = { className: 'danger', label: `Cancel it: ${key}` };
  return card(
    idOf(name, key),
    make('h4', {}, foreign(key)),
    facts([
      ['Due', instant(dueTime)],
      ['Scheduled', instant(scheduledTime)],
      ['Data', isUnreadable ? 'cannot be read' : data],
    ]),
    bar(rights.cancelDeadline && button('Cancel it', () => cancel(name, key), options)),
  );
}

const idOf = (name, key) => JSON.stringify([name, key]);

async function cancel(name, key) {
  const text = 'The application never hears of it. This cannot be undone.';
  if (!(await confirmed(['Cancel the deadline ', foreign(key), '?'], text, 'Cancel it'))) return;
  await remove('deadlines', { name, key });
  removeCard('deadline-list', idOf(name, key));
  tell('The deadline is cancelled.');
  $('waiting-title').focus();
}
