// "Make it fail": one button for each failure, and the timeline of what it led to.
import { $, chips, make, set, timeOf } from './dom.js';
import { placeOrder } from './order.js';
import { change } from './requests.js';

/** The title, and what it does to a session and to an order, where that differs. */
const FAULTS = {
  none: ['Let it run out', 'Nothing fails. You see how an end is noticed and reported.'],
  unheard: [
    'Switch notifications off',
    'Redis reports no ended session. A sweep finds it, within a minute.',
    'Redis reports nothing. A deadline does not need that, and comes in time.',
  ],
  killed: [
    'Kill the instance',
    'In the middle of the handler, before the mail is written. Another one takes over after the lease: 5 s here, 30 s by default.',
  ],
  'fails-twice': ['Fail twice', 'The handler throws two times. The library calls it again.'],
  'fails-always': ['Fail always', 'The handler never succeeds. Its event becomes a dead letter, which you replay.'],
  frozen: [
    'Freeze Redis',
    'For five seconds it does not reply. Requests without a session still work.',
    'For five seconds it does not reply, and the order is due meanwhile. It is cancelled when Redis is back.',
  ],
};
/** The types of entries: those of the page and the button, those that name an event, and those that name an order. */
const ALWAYS = ['armed', 'unnoticed', 'frozen'];
const OF_EVENT = ['attempt', 'failed', 'killed', 'dead-letter', 'replayed', 'mail'];
const OF_ORDER = ['paid', 'cancelled'];
const FREEZE_TIMEOUT = 15_000;
/** Until the order of an experiment is due. */
const SECONDS_LEFT = 4;

/** The running experiment. */
let run;

/** Lays out the buttons. `act` runs what one does, and shows errors; `current` is the session of the page. */
export function showFaults(reasons, { act, current }) {
  for (const [fault, [title, ofSession, ofOrder = ofSession]] of Object.entries(FAULTS)) {
    const reason = reasons[fault];
    const button = make('button', {
      type: 'button',
      textContent: title,
      disabled: reason !== null,
      id: `fault-${fault}`,
    });
    button.setAttribute('aria-describedby', `about-${fault}`);
    button.addEventListener(
      'click',
      () => void act(() => (isOfOrder() ? beginOrder : fault === 'frozen' ? freeze : begin)(fault, current)),
    );
    const about = make('p', { id: `about-${fault}`, className: 'quiet', textContent: reason ?? ofSession });
    $('ends').addEventListener('change', () => (about.textContent = reason ?? (isOfOrder() ? ofOrder : ofSession)));
    $('faults').append(make('li', {}, button, about));
  }
  $('replay').addEventListener('click', () => void act(() => change('POST', `/faults/replay/${run.eventId}`)));
}

function isOfOrder() {
  return document.querySelector('[name=end]:checked').value === 'order';
}

/** Whether the page must go on listening to this session, although it has another one. */
export function isWatching(sessionId) {
  return run?.sessionId === sessionId && !run.isDone;
}

async function begin(fault, current) {
  clear();
  await change('POST', `/faults/${fault}`);
  const { id, items } = await current();
  Object.assign(run, { sessionId: id, items });
}

/** Redis is frozen only when the order has been placed. */
async function beginOrder(fault) {
  clear({ isOfOrder: true });
  await change('POST', `/faults/${fault === 'frozen' ? 'none' : fault}`, { end: 'order' });
  const { id, sessionId, items } = await placeOrder(SECONDS_LEFT);
  Object.assign(run, { sessionId, items, orderId: id });
  if (fault !== 'frozen') return;
  await change('POST', '/faults/frozen');
  run.entries.push({ type: 'frozen', at: Date.now() });
  render();
  const began = performance.now();
  while ((await timed('/session')).status !== 200 && performance.now() - began < FREEZE_TIMEOUT);
}

function clear(fresh) {
  run = { entries: [], ...fresh };
  $('timeline').replaceChildren();
  $('no-timeline').hidden = true;
  set('verdict', '');
  $('replay').hidden = true;
}

/** An entry of the journal. */
export function showEntry(entry, sessionId) {
  if (!run) return;
  // The first one may come before the answer to the button.
  if (entry.type === 'armed' && entry.at > (run.armedAt ?? 0)) Object.assign(run, { sessionId, armedAt: entry.at });
  if (run.sessionId !== sessionId || entry.at < run.armedAt) return;
  run.entries.push(entry.type === 'order' ? { ...entry, type: entry.order.state } : entry);
  render();
}

/** The entries of the running experiment by time. Another order of the session may be due meanwhile. */
function entriesOfRun() {
  const { entries, orderId } = run;
  const isEnd = (entry) => (orderId ? entry.type === 'due' && entry.orderId === orderId : entry.type === 'expired');
  run.eventId = entries.find(isEnd)?.id;
  const isOfRun = ({ type, eventId, order }) =>
    ALWAYS.includes(type) ||
    (OF_EVENT.includes(type) && eventId === run.eventId) ||
    (OF_ORDER.includes(type) && order.id === orderId);
  return entries.filter((entry) => isEnd(entry) || isOfRun(entry)).toSorted((one, other) => one.at - other.at);
}

/** What Redis holds: C may be gone for a while before anybody has noticed. */
export function showSilence(room, sessionId) {
  if (!isWatching(sessionId) || !room || run.isOfOrder) return;
  const isKnown = run.entries.some(({ type }) => type === 'unnoticed' || type === 'expired');
  run.looksWithoutC = room.c ? 0 : (run.looksWithoutC ?? 0) + 1;
  if (isKnown || run.looksWithoutC < 2) return;
  run.entries.push({ type: 'unnoticed', at: Date.now(), minute: room.b?.minute });
  render();
}

function render() {
  const entries = entriesOfRun();
  const shown = entries.map((entry) => line(entry.type, entry.at - run.armedAt, TEXTS[entry.type]?.(entry), entry));
  // Only what is new may reach screen readers.
  for (const [i, each] of shown.entries()) {
    const there = $('timeline').children[i];
    if (!there) $('timeline').append(each);
    else if (!there.isEqualNode(each)) there.replaceWith(each);
  }
  const types = entries.map(({ type }) => type);
  const isFocused = document.activeElement === $('replay');
  $('replay').hidden = types.lastIndexOf('dead-letter') <= types.lastIndexOf('replayed');
  if (isFocused && $('replay').hidden) $('timeline-title').focus();
  const mails = entries.filter(({ type }) => type === 'mail');
  if (mails.length > 0 || types.includes('paid')) conclude(mails, types);
}

const TEXTS = {
  armed: () =>
    run.isOfOrder
      ? 'You did this. The order is due four seconds after it was placed.'
      : 'You did this. The session ends four seconds after its last request.',
  frozen: () => 'Redis does not reply for five seconds. The time of the order runs all the same.',
  unnoticed: ({ minute }) =>
    `C is gone, and Redis has not reported it. B still has the session: a sweep looks there at ${minute ? timeOf(minute) : 'the full minute'}, or as soon as the library notices that it heard nothing.`,
  expired: ({ instance }) =>
    `The end is recorded in the stream, and A keeps the data. ${named(instance)} gets the event.`,
  due: ({ instance, late }) =>
    `The deadline was found ${late.toLocaleString('en')} ms after its time. ${named(instance)} gets it.`,
  cancelled: ({ order }) => `The row of the order says “cancelled” now, by ${order.instance}.`,
  paid: ({ order }) => `The row of the order says “paid”, by ${order.instance}: nothing is cancelled.`,
  attempt: ({ instance, attempt }) =>
    run.isOfOrder
      ? `${named(instance)} is about to write the mail, attempt ${attempt}.`
      : `${named(instance)} calls the handler, attempt ${attempt}.`,
  failed: () => 'The handler throws. The event stays, and is tried again after a pause.',
  killed: ({ instance }) =>
    `${named(instance)} is killed in the middle of the handler, which is no failed attempt. Its hold on the event ends after five seconds.`,
  'dead-letter': () =>
    'The third failure. The event is a dead letter now, with a copy of the items, and holds up nobody.',
  replayed: () => 'The mail server works again. The dead letter goes back to its handler.',
  mail: ({ to, isRepeated }) =>
    isRepeated ? 'This mail is in the outbox already: it is not written again.' : `The mail to ${to} is in the outbox:`,
};

const TITLES = {
  armed: 'Begun',
  unnoticed: 'Over, unnoticed',
  expired: 'Expired',
  frozen: 'Frozen',
  due: 'Due',
  cancelled: 'Cancelled',
  paid: 'Paid',
  attempt: 'Handler',
  failed: 'Failed',
  killed: 'Killed',
  'dead-letter': 'Dead letter',
  replayed: 'Replayed',
  mail: 'Mail',
};

function named(instance) {
  return instance.replace(/^i/, 'I');
}

function line(type, after, text, { items, title = TITLES[type], at = Date.now() } = {}) {
  const dateTime = new Date(at).toISOString();
  const head = make(
    'div',
    { className: 'head' },
    make('strong', { textContent: title }),
    make('time', { className: 'end', dateTime, textContent: `${(Math.max(0, after) / 1000).toFixed(1)} s` }),
  );
  const list = items && type === 'mail' ? [chips(items)] : [];
  return make('li', { className: type }, head, make('p', { textContent: text }), ...list);
}

function conclude(mails, types) {
  run.isDone = true;
  const isWhole = mails.every(({ items }) => JSON.stringify(items) === JSON.stringify(run.items ?? items));
  const isOnce = mails.filter(({ isRepeated }) => !isRepeated).length <= 1;
  const isEither = mails.length === 0 || !types.includes('paid');
  const one = run.isOfOrder ? 'One mail, with the whole order.' : 'One mail, with the whole cart.';
  const fine = mails.length > 0 ? one : 'The payment came first, and there is no mail.';
  set('verdict', isWhole && isOnce && isEither ? `Lost: nothing. ${fine}` : 'Something was lost: please report this.');
}

/** Redis cannot tell of its own freeze: this timeline is what the browser sees. */
async function freeze(_fault, current) {
  clear();
  await change('PUT', '/session', { maxInactiveInterval: 1800 });
  const before = await current();
  await change('POST', '/faults/frozen');
  const began = performance.now();
  const tell = (type, title, text) => $('timeline').append(line(type, performance.now() - began, text, { title }));
  tell('killed', 'Frozen', 'Redis does not reply for five seconds.');
  let isFrozen = true;
  while (isFrozen && performance.now() - began < FREEZE_TIMEOUT) {
    const free = await timed('/faults');
    tell('mail', 'No session', `A request that needs no session: ${free.status} after ${free.ms} ms.`);
    const bound = await timed('/session');
    isFrozen = bound.status !== 200;
    const text = isFrozen ? 'an honest error, and no hanging request' : 'Redis is back';
    tell(
      isFrozen ? 'failed' : 'mail',
      'Session',
      `A request for the session: ${bound.status} after ${bound.ms} ms, ${text}.`,
    );
  }
  const after = await current();
  const isWhole = after.id === before.id && JSON.stringify(after.items) === JSON.stringify(before.items);
  set(
    'verdict',
    isWhole ? 'Lost: nothing. The same session, with the same cart.' : 'Something was lost: please report this.',
  );
}

async function timed(path) {
  const began = performance.now();
  const { status } = await fetch(path);
  return { status, ms: Math.round(performance.now() - began) };
}
