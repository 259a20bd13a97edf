import { when } from './words.js';

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; texts are never markup. */
export function make(tag, { className = '', ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

/** Text that somebody else chose: it cannot turn the direction of what stands around it. */
export const foreign = (text) => make('bdi', { textContent: text });

/** An instant in words, and exactly where somebody points at it. */
export function instant(iso) {
  const date = new Date(iso);
  return make('time', { dateTime: iso, title: date.toLocaleString(), textContent: when(date) });
}

/** A list of names and what belongs to them; rows without anything are left out. */
export function facts(rows, className = 'facts') {
  const there = rows.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  return make('dl', { className }, ...there.flatMap(([name, value]) => fact(name, value)));
}

export function fact(name, value) {
  return [make('dt', { textContent: name }), make('dd', {}, ...[value].flat())];
}

/** A card of a list. `id` finds it again. */
export function card(id, ...children) {
  const element = make('li', { className: 'card' }, ...children);
  element.dataset.id = id;
  return element;
}

export function fill(list, cards, nothing) {
  const none = make('li', { className: 'card', textContent: nothing });
  $(list).replaceChildren(...(cards.length > 0 ? cards : [none]));
}

/** What stands beside each other; what is not there is left out. */
export const bar = (...elements) => make('div', { className: 'bar' }, ...elements.filter(Boolean));

export const json = (value) => make('pre', { tabIndex: 0, textContent: JSON.stringify(value, null, 2) });

export function button(text, act, { label, ...properties } = {}) {
  const element = make('button', { type: 'button', textContent: text, ...properties });
  if (label) element.setAttribute('aria-label', label);
  onPress(element, act);
  return element;
}

/** Lets a button do nothing more while its action runs. It stays enabled, and so keeps the focus. */
export function onPress(element, act) {
  let isRunning = false;
  element.addEventListener('click', async () => {
    if (isRunning) return;
    isRunning = true;
    await attempt(act);
    isRunning = false;
  });
}

/** Removes the card of what is gone. The list may have another one by now than the one whose button was pressed. */
export function removeCard(list, id) {
  for (const card of $(list).querySelectorAll('[data-id]')) if (card.dataset.id === id) card.remove();
}

/** Tells of what was done; a screen reader reads it. */
export function tell(text) {
  $('error').textContent = '';
  $('status').textContent = text;
}

export async function attempt(act) {
  try {
    await act();
  } catch (error) {
    $('status').textContent = '';
    $('error').textContent = error instanceof Error ? error.message : String(error);
  }
}

/** What waits for the answer to the question that is asked. */
let answer = () => {};

/** Asks before something that cannot be undone. `title`: a text, or its parts. Resolves to whether to do it. */
export function confirmed(title, text, yes) {
  $('dialog-title').replaceChildren(...[title].flat());
  $('dialog-text').textContent = text;
  $('dialog-yes').textContent = yes;
  $('dialog').showModal();
  return new Promise((resolve) => (answer = resolve));
}

export function startDialog() {
  const dialog = $('dialog');
  // `close` comes with the next frame, and the next question may be asked before.
  dialog.addEventListener('submit', ({ submitter }) => answer(submitter.value === 'yes'));
  dialog.addEventListener('cancel', () => answer(false));
  dialog.addEventListener('close', () => dialog.open || answer(false));
}
