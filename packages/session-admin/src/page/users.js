import { read, remove, rights } from './api.js';
import {
  $,
  attempt,
  bar,
  button,
  card,
  confirmed,
  facts,
  foreign,
  instant,
  json,
  make,
  onPress,
  removeCard,
  tell,
} from './dom.js';
import { bytes, count, deviceName, duration } from './words.js';

/** What was searched for last: answers to earlier searches come too late. */
let search;

/** Offers to search by what the application has: its indexes, and by what people know of its users. */
export function offerSearches({ areNamed, indexes }) {
  const [user] = $('search-by').options;
  user.value = areNamed ? 'typed' : 'username';
  user.textContent = areNamed ? 'User' : 'User name';
  const known = new Set([...$('search-by').options].map(({ value }) => value));
  const missing = indexes.filter((name) => !known.has(`index ${name}`));
  $('search-by').append(...missing.map((name) => make('option', { value: `index ${name}`, textContent: name })));
}

/** Shows what an address asks for, such as `#users?username=bob`. */
export async function showUsers(query) {
  const index = query.get('index') ?? undefined;
  const by = ['id', 'typed', 'value'].find((name) => query.has(name)) ?? 'username';
  const text = query.get(by) ?? '';
  // A link leads to a user name, also where one does not search by it.
  const chosen = index === undefined ? by : `index ${index}`;
  const isOffered = [...$('search-by').options].some(({ value }) => value === chosen);
  $('search-by').value = isOffered ? chosen : 'typed';
  $('search-text').value = text;
  nameField();
  $('found').hidden = text === '';
  if (text === '') $('search-text').focus();
  else await find({ by, text, index, username: query.get('username') ?? undefined });
}

export function startUsers() {
  $('search-by').addEventListener('change', nameField);
  $('search').addEventListener('submit', (event) => {
    event.preventDefault();
    const [by, text] = [$('search-by').value, $('search-text').value.trim()];
    const index = /^index (.*)$/s.exec(by)?.[1];
    const query = new URLSearchParams(index === undefined ? { [by]: text } : { index, value: text });
    const hash = `#users?${query}`;
    // The same search again is a look at what has changed.
    if (location.hash === hash) dispatchEvent(new HashChangeEvent('hashchange'));
    else location.hash = hash;
  });
  onPress($('end-all'), endAll);
  onPress($('more-sessions'), () => list(search, search.next));
}

function nameField() {
  const { value, textContent } = $('search-by').selectedOptions[0];
  $('search-label').textContent = value === 'typed' ? 'Whom you look for' : textContent;
}

async function find(wanted) {
  search = wanted;
  $('sessions').replaceChildren();
  $('more-sessions').hidden = $('end-all').hidden = true;
  $('found-title').textContent = 'Searching…';
  if (wanted.by === 'typed') return findUser(wanted);
  if (wanted.by !== 'id') return list(wanted, 0);
  $('found-title').textContent = 'No live session has this id';
  const session = await read(`sessions/${encodeURIComponent(wanted.text)}`, { username: wanted.username });
  if (search !== wanted) return;
  $('found-title').textContent = '1 session';
  $('sessions').replaceChildren(cardOf(session, true));
}

async function findUser(wanted) {
  const { users } = await read('users', { text: wanted.text });
  if (search !== wanted) return;
  const [first] = users;
  if (users.length === 1) return list(Object.assign(wanted, first), 0);
  const found = users.length === 0 ? 'Nobody' : count(users.length, 'user');
  $('found-title').replaceChildren(`${found} found by `, foreign(wanted.text));
  $('sessions').replaceChildren(...users.map(linkTo));
}

function linkTo({ username, label }) {
  const href = `#users?${new URLSearchParams({ username })}`;
  return card(username, make('a', { href }, foreign(nameOf(username, label))));
}

const nameOf = (username, label) => (label ? `${label} (${username})` : username);

async function list(wanted, offset) {
  const { index, text } = wanted;
  if (index === undefined) wanted.username ??= text;
  const { username } = wanted;
  const of = index === undefined ? { username } : { index, value: text };
  const { sessions, total, next } = await read('sessions', { ...of, offset });
  if (search !== wanted) return;
  wanted.next = next;
  const found = total === 0 ? 'No live session' : count(total, 'session');
  const label = wanted.label ?? sessions[0]?.label;
  const whose = index === undefined ? nameOf(username, label) : `${index} ${text}`;
  $('found-title').replaceChildren(`${found} of `, foreign(whose));
  if (offset === 0) $('sessions').replaceChildren();
  $('sessions').append(...sessions.map((session) => cardOf(session, false)));
  $('more-sessions').hidden = next === null;
  $('end-all').hidden = total === 0 || !rights.end || index !== undefined;
}

function cardOf(session, isOpen) {
  const { id, device, principalName, isOwn, bound } = session;
  const name = deviceName(device);
  const badge = (textContent) => make('span', { className: 'badge', textContent });
  const own = isOwn ? badge('your own') : undefined;
  const visitor = principalName === null ? badge('not signed in') : undefined;
  const details = make('details', { open: isOpen }, make('summary', { textContent: 'Details' }));
  details.addEventListener('toggle', () => details.open && attempt(() => open(details, session)));
  const options = { className: 'danger', label: `End this session: ${name}` };
  const actions = bar(rights.end && button('End this session', () => end(session, name), options));
  return card(
    id,
    make('h4', {}, foreign(name), own, visitor, bound && badge('bound')),
    summaryOf(session),
    details,
    actions,
  );
}

function summaryOf(session) {
  const { authenticatedTime, creationTime, lastAccessedTime, expirationTime, device, isOwn } = session;
  const { principalName, label } = session;
  const isOfOthers = search.username === undefined && principalName !== null;
  return facts([
    ['User', isOfOthers && foreign(nameOf(principalName, label))],
    [authenticatedTime ? 'Signed in' : 'Created', instant(authenticatedTime ?? creationTime)],
    ['Last used', isOwn ? 'now' : instant(lastAccessedTime)],
    ['Ends if unused', expirationTime ? instant(expirationTime) : 'never'],
    ['Network', device?.address && foreign(device.address)],
  ]);
}

/** Whose session it is. A name that cannot be read, as without its key, is the one that was searched for. */
function userOf({ principalName }) {
  return principalName ?? search.username;
}

async function open(details, shown) {
  if (details.children.length > 1) return;
  const { id, principalName } = shown;
  const session = await read(`sessions/${encodeURIComponent(id)}`, { username: userOf(shown) });
  if (details.children.length > 1) return;
  const { creationTime, maxInactiveInterval, absoluteExpirationTime, device, bound, size, attributes } = session;
  details.append(
    facts([
      ['User', principalName && foreign(nameOf(principalName, session.label))],
      ['Session id', make('code', { textContent: id })],
      ['Created', instant(creationTime)],
      ['May be unused for', maxInactiveInterval < 0 ? 'ever' : duration(maxInactiveInterval)],
      ['Ends at the latest', absoluteExpirationTime ? instant(absoluteExpirationTime) : 'never'],
      ['Browser says', device?.userAgent && foreign(device.userAgent)],
      ['Bound to its browser', bound ? ['since ', instant(bound.since), `, by ${bound.by}`] : 'no'],
      ['Size', bytes(size)],
    ]),
    make('h5', { textContent: attributes.length === 0 ? 'No attributes' : 'Attributes' }),
    facts(attributes.map((each) => [each.name, attributeOf(each)])),
  );
}

function attributeOf({ size, value, isUnreadable }) {
  if (isUnreadable) return `${bytes(size)}, cannot be read`;
  return value === undefined ? bytes(size) : json(value);
}

async function end(session, name) {
  const { id, isOwn } = session;
  const text = isOwn
    ? 'This is your own session: you have to sign in again. This cannot be undone.'
    : `Whoever uses it has to sign in again. What it holds is lost. This cannot be undone.`;
  if (!(await confirmed(['End the session of ', foreign(name), '?'], text, 'End it'))) return;
  await remove(`sessions/${encodeURIComponent(id)}`, { username: userOf(session) });
  tell('The session has ended.');
  removeCard('sessions', id);
  if (search.by === 'id') $('found').hidden = true;
  else await list(search, 0);
  // The button with the focus is gone.
  if (!$('found').hidden) $('found-title').focus();
}

async function endAll() {
  const { username } = search;
  const text = 'The user has to sign in again on every device. What the sessions hold is lost. This cannot be undone.';
  if (!(await confirmed(['End all sessions of ', foreign(username), '?'], text, 'End all'))) return;
  const { ended } = await remove('sessions', { username });
  tell(`${count(ended, 'session')} ended.`);
  await list(search, 0);
  $('found-title').focus();
}
