// The page of the demo. It never polls: what it shows comes from the answers to the buttons and from the event stream
// of its session.
import { $, chips, fill, make, minutes, set, timeOf } from './dom.js';
import { showRequest, showRoom } from './engine-room.js';
import { payAtLast, payOrder, placeOrder, setClock, showOrder, tickOrder } from './order.js';
import { change, request } from './requests.js';
import { isWatching, showEntry, showFaults, showSilence } from './timeline.js';

/** The session as the server last told us, and when it ends by this browser's clock. */
let session = { isNew: true, items: [] };
let endsAt = 0;
/** When the server told it. */
let shownAt = 0;
/** The id of the session shown last. */
let shownId;
/** The event that told the end of that session. */
let ending;
/** The event streams by the id of their session: of the one shown, and of one whose timeline is not complete. */
const streams = new Map();
const seenEntries = new Set();
/** The events whose mail is shown. */
const mails = new Set();
// Other tabs share the session: they are told, since asking would keep it alive.
const tabs = new BroadcastChannel('nest-session-demo');

/** Does what a button stands for, then shows the session as it is now. */
async function act(work, where = 'note') {
  const pressed = document.activeElement;
  note('', { where });
  try {
    await work();
    await refresh();
  } catch (error) {
    note(error.message, { where, isProblem: true });
  }
  keepFocus(pressed);
}

/** A button that has gone leaves the keyboard at the one that follows from it. */
function keepFocus(pressed) {
  const next = pressed?.dataset.next;
  if (next && !(pressed.isConnected && pressed.checkVisibility())) $(next).focus();
}

async function refresh() {
  const view = await request('GET', '/session');
  const at = Date.now();
  const message = { view, at, endsAt: at + view.maxInactiveInterval * 1000 };
  show(message);
  tabs.postMessage(message);
  await showDevices();
  return view;
}

function show(message) {
  // What another tab was told before this one may come after it.
  if (message.at < shownAt) return;
  shownAt = message.at;
  session = message.view;
  endsAt = message.endsAt;
  if (session.flash) set('flash', session.flash);
  if (!session.isNew) {
    if (session.id !== shownId) watch(session.id);
    shownId = session.id;
    ending = undefined;
  }
  render();
}

function render() {
  const { isNew, id, principalName, items, theme, maxInactiveInterval } = session;
  const isOver = ending !== undefined;
  $('id').textContent = isNew || isOver ? 'none' : id;
  $('login').hidden = principalName !== undefined && !isOver;
  $('signed-in').hidden = !$('login').hidden;
  $('devices-card').hidden = $('signed-in').hidden;
  $('principal').textContent = principalName ?? '';
  if (principalName === undefined || isOver) set('flash', '');
  const inCart = isOver ? [] : items;
  $('items').replaceChildren(...chips(inCart).children);
  $('no-items').hidden = inCart.length > 0;
  $('count').textContent = inCart.length > 0 ? `${inCart.length} items`.replace(/^1 items/, '1 item') : '';
  for (const id of ['empty', 'place']) $(id).disabled = inCart.length === 0;
  for (const radio of document.getElementsByName('lifetime')) {
    radio.checked = !isNew && !isOver && Number(radio.value) === maxInactiveInterval;
  }
  document.documentElement.dataset.theme = theme ?? '';
  $('theme').textContent = isDark() ? 'Light theme' : 'Dark theme';
  tick();
}

function isDark() {
  return session.theme ? session.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function tick() {
  const isAlive = !session.isNew && !ending;
  const rest = isAlive ? Math.max(0, endsAt - Date.now()) : 0;
  const whole = session.maxInactiveInterval * 1000;
  $('ring').style.setProperty('--rest', isAlive ? Math.min(100, (100 * rest) / whole) : 0);
  set('rest', isAlive ? minutes(Math.ceil(rest / 1000)) : '–');
  set('rest-of', isAlive ? `of ${minutes(whole / 1000)}` : '');
  set('state', stateOf(isAlive, rest));
  tickOrder(isAlive ? session.order : undefined);
}

function stateOf(isAlive, rest) {
  if (isAlive) return rest > 0 ? 'Alive: everything you do restarts the timeout.' : 'Time is up …';
  if (ending?.type === 'expired') return 'Expired. The application got the event, with the cart.';
  if (ending) return 'Ended. The application got the event.';
  return 'No session yet. It begins with your first action.';
}

function note(text, { where = 'note', isProblem = false } = {}) {
  $(where).textContent = text;
  $(where).classList.toggle('problem', isProblem);
}

async function showDevices() {
  if (!session.principalName || ending) return;
  const devices = await request('GET', '/devices');
  fill('devices', devices.map(deviceRow));
  $('end-others').disabled = devices.length < 2;
}

function deviceRow({ id, device, creationTime, lastAccessedTime, timeToLive, isThisOne, isBound }) {
  const name = `${browserOf(device?.userAgent)}${isThisOne ? ', this one' : ''}`;
  const times = `Created ${timeOf(creationTime)}, last used ${timeOf(lastAccessedTime)}, ends in ${minutes(Math.ceil(timeToLive / 1000))}`;
  const about = make(
    'div',
    { className: 'grow' },
    make('strong', { textContent: name }),
    make('p', { className: 'quiet', textContent: times }),
    make('p', { className: 'quiet', textContent: isBound ? BOUND : UNBOUND }),
  );
  const button = make('button', { type: 'button', value: id, textContent: 'End' });
  button.dataset.next = 'refresh-devices';
  button.setAttribute('aria-label', `End ${name}, created ${timeOf(creationTime)}`);
  return make('li', { className: 'row' }, about, button);
}

const BOUND = 'Bound to its browser: a copy of its cookie opens nothing.';
const UNBOUND = 'Not bound: whoever copies its cookie has the session.';

function browserOf(userAgent = 'Unknown browser') {
  const [, browser = userAgent.split(/[\s/]/)[0]] =
    /(Edg|Firefox|HeadlessChrome|Chrome|Safari|curl)\//.exec(userAgent) ?? [];
  const [system] = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(userAgent) ?? [];
  const name = browser.replace('HeadlessChrome', 'Chromium').replace('Edg', 'Edge');
  return system ? `${name} on ${system}` : name;
}

/** Everything of a session that the server tells unasked. */
function onMessage(message, sessionId) {
  if (message.type === 'room') return onRoom(message, sessionId);
  // A stream begins with the entries so far, also after a reconnection.
  if (seenEntries.has(message.id)) return;
  seenEntries.add(message.id);
  showEntry(message, sessionId);
  if (message.type === 'request') showRequest(message);
  if (message.type === 'mail') showMail(message);
  if (message.type === 'order') {
    showOrder(message.order);
    tick();
  }
  const isEnd = message.type === 'expired' || message.type === 'deleted';
  // The answer to a request may have told before that there is no session any more.
  if (isEnd && message.sessionId === shownId) {
    ending = message;
    render();
  }
}

function onRoom({ room, now }, sessionId) {
  setClock(now);
  showSilence(room, sessionId);
  if (sessionId !== shownId) return;
  showRoom(room);
  if (room?.c) endsAt = Date.now() + room.c.timeToLive;
  tick();
}

function showMail({ to, at, text, items, isRepeated, eventId }) {
  // A handler may have been called again. Its mail is there once.
  if (isRepeated && mails.has(eventId)) return;
  mails.add(eventId);
  const head = make(
    'div',
    { className: 'head' },
    make('strong', { textContent: `To ${to}` }),
    make('time', { className: 'end', textContent: timeOf(at) }),
  );
  $('outbox').prepend(make('li', {}, head, make('p', { textContent: text }), chips(items)));
  $('no-mail').hidden = true;
}

function watch(id) {
  for (const [other, stream] of streams) {
    if (isWatching(other)) continue;
    stream.close();
    streams.delete(other);
  }
  const stream = new EventSource('/events');
  streams.set(id, stream);
  stream.addEventListener('message', ({ data }) => onMessage(JSON.parse(data), id));
  stream.addEventListener('open', () => showStream('live'));
  stream.addEventListener('error', () =>
    showStream(stream.readyState === EventSource.CLOSED ? 'idle' : 'reconnecting'),
  );
}

function showStream(state) {
  set('stream', state);
  $('stream').classList.toggle('live', state === 'live');
}

function onAction(id, type, work, where) {
  $(id).addEventListener(type, (event) => void act(() => work(event), where));
}

async function addFromTwoTabs() {
  // Two requests without a session would be given one each.
  if (session.isNew || ending) await change('PUT', '/session', { maxInactiveInterval: 1800 });
  const before = await request('GET', '/session');
  const names = ['apple of one tab', 'apple of another'];
  await Promise.all(names.map((name) => request('POST', '/cart', { name })));
  const after = await request('GET', '/session');
  const more = after.items.length - before.items.length;
  note(`Two requests sent at once, ${more} items more in the cart: neither overwrote the other.`);
}

async function payLate() {
  note('The payment is sent when the time is up.', { where: 'order-note' });
  await payAtLast();
  note('', { where: 'order-note' });
}

$('add').addEventListener('submit', (event) => {
  event.preventDefault();
  const { name } = event.target.elements;
  void act(() => request('POST', '/cart', { name: name.value || name.placeholder })).then(() => (name.value = ''));
});
for (const name of ['ann', 'bob']) onAction(`login-${name}`, 'click', () => change('POST', '/login', { name }));
onAction('logout', 'click', () => change('POST', '/logout'));
onAction('empty', 'click', () => change('DELETE', '/cart'));
onAction('race', 'click', addFromTwoTabs);
onAction('place', 'click', () => placeOrder(), 'order-note');
onAction('pay', 'click', payOrder, 'order-note');
onAction('pay-at-last', 'click', payLate, 'order-note');
onAction('theme', 'click', () => change('PUT', '/session/theme', { theme: isDark() ? 'light' : 'dark' }));
onAction('refresh-devices', 'click', () => undefined);
onAction('end-others', 'click', () => change('DELETE', '/devices'));
onAction('lifetime', 'change', ({ target }) =>
  change('PUT', '/session', { maxInactiveInterval: Number(target.value) }),
);
$('products').addEventListener('click', ({ target }) => {
  if (target.value) void act(() => request('POST', '/cart', { name: target.value }));
});
$('devices').addEventListener('click', ({ target }) => {
  if (target.value) void act(() => change('DELETE', `/devices/${target.value}`));
});

tabs.addEventListener('message', ({ data }) => show(data));
setInterval(tick, 250);
void act(async () => {
  const reasons = await request('GET', '/faults');
  showFaults(reasons, { act, current: refresh });
  showRoom(undefined);
  if (reasons.none) {
    $('no-room').hidden = false;
    $('no-room').textContent = 'Empty: the demo found no Redis to start, so it keeps its sessions in memory.';
  }
});
