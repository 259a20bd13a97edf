// What Redis holds of the session, as the server has read it.
import { $, fill, make, minutes, timeOf } from './dom.js';

const MOST_REQUESTS = 8;
/** Milliseconds: an instance that has asked for events since then is alive. */
const ALIVE = 10_000;
const TIMES = ['creationTime', 'lastAccessedTime', 'authenticatedAt', 'bucket', 'due', 'at'];

const requests = [];

export function showRoom(room) {
  const { a, b, c, indexes = [], entries = [], groups = [] } = room ?? {};
  const fields = sorted(a?.fields);
  const isThere = fields.length > 0;
  tag('a', isThere ? `lives ${minutes(Math.ceil(a.timeToLive / 1000))}` : 'gone', isThere, room);
  tag('b', b ? 'in it' : 'not in it', b, room);
  tag('c', c ? 'there' : 'gone', c, room);
  $('a-key').textContent = short(a?.key ?? '');
  $('c-key').textContent = short(c?.key ?? '');
  fill(
    'fields',
    fields.flatMap(([name, value]) => row(name, shown(name, value))),
  );
  const rows = b ? row(`until ${timeOf(b.minute)}`, short(b.member), short(b.key)) : [];
  const ofIndexes = indexes.map(({ key, member, score }) =>
    row(`index ${short(key.split(':').at(-1))}`, `${short(member)}, signed in ${timeOf(score)}`, key),
  );
  fill('bucket', [...rows, ...ofIndexes.flat()]);
  fill(
    'entries',
    entries.map(([position, parts]) => entry(position, parts)),
  );
  fill('groups', groups.map(group));
  showDeadline(room);
}

function showDeadline(room) {
  const { key = '', fields = {}, due, entries = [] } = room?.deadline ?? {};
  $('deadline-card').hidden = key === '';
  const outcome = fields.fired ? 'has come' : 'cancelled';
  tag('d', due ? 'waits' : outcome, due, room);
  $('d-key').textContent = key;
  const rows = sorted(fields).flatMap(([name, value]) => row(name, shown(name, value)));
  if (due) rows.push(...row('sorted set', `${due.key}, due ${timeOf(due.at)}`, due.member));
  fill('d-fields', rows);
  fill(
    'd-entries',
    entries.map(([position, parts]) => entry(position, parts)),
  );
}

export function showRequest({ method, path, status, commands }) {
  const began = Math.min(...commands.map((command) => command.began));
  const ended = Math.max(...commands.map((command) => command.began + (command.microseconds ?? 0) / 1000));
  const waited = Math.round((ended - began) * 1000).toLocaleString('en');
  const names = commands.map(
    ({ name, microseconds }) =>
      `${name} ${microseconds === undefined ? '…' : `${microseconds.toLocaleString('en')} µs`}`,
  );
  const count = commands.length === 1 ? '1 command' : `${commands.length} commands`;
  const cost = commands.length > 0 ? `${count}, ${waited} µs` : 'no command';
  const line = make(
    'div',
    { className: 'head' },
    make('strong', { textContent: `${method} ${path}` }),
    make('span', { textContent: `${status}` }),
    make('span', { className: 'end', textContent: cost }),
  );
  requests.unshift(make('li', {}, line, make('code', { textContent: names.join(' · ') })));
  requests.splice(MOST_REQUESTS);
  $('requests').replaceChildren(...requests);
}

function sorted(fields = {}) {
  return Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/** Says nothing while nothing is known. */
function tag(letter, text, isThere, isKnown) {
  $(`${letter}-state`).textContent = isKnown ? text : '';
  $(`${letter}-state`).classList.toggle('there', Boolean(isThere));
}

function row(name, value, title = '') {
  return [make('dt', { textContent: name }), make('dd', { title }, make('code', { textContent: value }))];
}

function shown(name, value) {
  return TIMES.includes(name) ? `${value} (${timeOf(Number(value))})` : short(value);
}

/** Ids in full are for those who look closely: the middle of each is left out. */
function short(text) {
  return text.replace(/([\w-]{6})[\w-]{31}([\w-]{6})(?![\w-])/g, '$1…$2');
}

function entry(position, parts) {
  const fields = Object.fromEntries(parts.flatMap((part, i) => (i % 2 === 0 ? [[part, parts[i + 1]]] : [])));
  return make(
    'li',
    {},
    make(
      'div',
      { className: 'head' },
      make('strong', { className: fields.type, textContent: fields.type }),
      make('time', { className: 'end', textContent: timeOf(Number(fields.at)) }),
    ),
    make('code', { textContent: `${position} ${short(fields.session ?? fields.key)}` }),
  );
}

function group({ name, lag, pending, retrying, consumers }) {
  const instances = consumers.filter(({ idle }) => idle < ALIVE).length;
  const state =
    lag + pending === 0 ? 'has handled everything' : `${lag} unread, ${pending} in hand, ${retrying} to retry`;
  const count = instances === 1 ? '1 instance' : `${instances} instances`;
  return make(
    'li',
    { className: 'head' },
    make('strong', { textContent: `group ${name}` }),
    make('span', { textContent: state }),
    make('span', { className: 'end', textContent: count }),
  );
}
