import { read, remove } from './api.js';
import { $, button, confirmed, facts, foreign, instant, make, onPress, removeCard, tell } from './dom.js';
import { bytes, count, duration, when } from './words.js';

let rights = {};
let shown;

export async function showDeadlines(query, allowed) {
  rights = allowed;
  const { deadlines } = await read('deadlines');
  $('name-list').replaceChildren(...deadlines.map(cardOfName));
  if (deadlines.length === 0)
    $('name-list').append(make('li', { className: 'card', textContent: 'No deadline waits.' }));
  const name = query.get('name');
  $('waiting').hidden = !name;
  if (name) await list({ name });
}

export function startDeadlines() {
  onPress($('more-deadlines'), () => list(shown, shown.next));
}

function cardOfName({ name, count: waiting, overdue }) {
  return make(
    'li',
    { className: 'card' },
    make('h3', {}, foreign(name)),
    facts([
      ['Waiting', count(waiting, 'deadline')],
      ['Late', overdue ? `the first one is due for ${duration(overdue)}` : 'none'],
    ]),
    make(
      'div',
      { className: 'bar' },
      make('a', {
        href: `#deadlines?${new URLSearchParams({ name })}`,
        textContent: 'Show them',
        ariaLabel: `Show them: deadlines ${name}`,
      }),
    ),
  );
}

async function list(wanted, after) {
  shown = wanted;
  // First: a heading without a text tells nobody what is being loaded.
  $('waiting-title').replaceChildren('Waiting: ', foreign(wanted.name));
  const { deadlines, next } = await read('deadlines', {
    name: wanted.name,
    afterKey: after?.key,
    afterDueAt: after?.dueAt,
  });
  if (shown !== wanted) return;
  wanted.next = next;
  if (!after) $('deadline-list').replaceChildren();
  $('deadline-list').append(...deadlines.map((each) => card(wanted.name, each)));
  $('more-deadlines').hidden = next === null;
}

function card(name, { key, dueTime, scheduledTime, size, value, isUnreadable }) {
  const element = make('li', { className: 'card' });
  element.dataset.id = idOf(name, key);
  const data =
    value === undefined ? bytes(size) : make('pre', { tabIndex: 0, textContent: JSON.stringify(value, null, 2) });
  element.append(
    make('h4', {}, foreign(key)),
    facts([
      ['Due', instant(dueTime, when)],
      ['Scheduled', instant(scheduledTime, when)],
      ['Data', isUnreadable ? 'cannot be read' : data],
    ]),
  );
  if (rights.cancelDeadline) {
    const cancelIt = button('Cancel it', () => cancel(name, key), {
      className: 'danger',
      label: `Cancel it: ${key}`,
    });
    element.append(make('div', { className: 'bar' }, cancelIt));
  }
  return element;
}

const idOf = (name, key) => JSON.stringify([name, key]);

async function cancel(name, key) {
  const text = 'The application never hears of it. This cannot be undone.';
  if (!(await confirmed({ title: `Cancel the deadline ${key}?`, text, yes: 'Cancel it' }))) return;
  await remove('deadlines', { name, key });
  removeCard('deadline-list', idOf(name, key));
  tell('The deadline is cancelled.');
  $('waiting-title').focus();
}
