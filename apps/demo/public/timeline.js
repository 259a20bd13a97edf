// "Make it fail": one button for each failure, and the timeline of what it led to.
import { $, chips, make, set, timeOf } from './dom.js';
import { change } from './requests.js';

const FAULTS = {
  none: ['Let it run out', 'Nothing fails. You see how an end is noticed and reported.'],
  unheard: ['Switch notifications off', 'Redis reports no ended session. A sweep finds it, within a minute.'],
  killed: [
    'Kill the instance',
    'In the middle of the handler, before the mail is written. Another one takes over after the lease: 5 s here, 30 s by default.',
  ],
  'fails-twice': ['Fail twice', 'The handler throws two times. The library calls it again.'],
  'fails-always': ['Fail always', 'The handler never succeeds. Its event becomes a dead letter, which you replay.'],
  frozen: ['Freeze Redis', 'For five seconds it does not reply. Requests without a session still work.'],
};
const KINDS = ['armed', 'expired', 'attempt', 'failed', 'killed', 'dead-letter', 'replayed', 'mail'];
const FREEZE_TIMEOUT = 15_000;

/** The running experiment. */
let run;

/** Lays out the buttons. `act` runs what one does, and shows errors; `current` is the session of the page. */
export function showFaults(reasons, { act, current }) {
  for (const [fault, [title, text]] of Object.entries(FAULTS)) {
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
      () => void act(() => (fault === 'frozen' ? freeze(current) : begin(fault, current))),
    );
    $('faults').append(
      make('li', {}, button, make('p', { id: `about-${fault}`, className: 'quiet', textContent: reason ?? text })),
    );
  }
  $('replay').addEventListener('click', () => void act(() => change('POST', `/faults/replay/${run.sessionId}`)));
}

/** Whether the page must go on listening to this session, although it has another one. */
export function isWatching(sessionId) {
  return run?.sessionId === sessionId && !run.isDone;
}

async function begin(fault, current) {
  clear({ fault });
  await change('POST', `/faults/${fault}`);
  const { id, items } = await current();
  Object.assign(run, { sessionId: id, items });
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
  if (!run || !KINDS.includes(entry.type)) return;
  // The first one may come before the answer to the button.
  if (entry.type === 'armed' && entry.at > (run.armedAt ?? 0)) Object.assign(run, { sessionId, armedAt: entry.at });
  if (run.sessionId !== sessionId || entry.at < run.armedAt) return;
  run.entries.push(entry);
  render();
}

/** What Redis holds: C may be gone for a while before anybody has noticed. */
export function showSilence(room, sessionId) {
  if (!isWatching(sessionId) || !room) return;
  const isKnown = run.entries.some(({ type }) => type === 'unnoticed' || type === 'expired');
  run.looksWithoutC = room.c ? 0 : (run.looksWithoutC ?? 0) + 1;
  if (isKnown || run.looksWithoutC < 2) return;
  run.entries.push({ type: 'unnoticed', at: Date.now(), minute: room.b?.minute });
  render();
}

function render() {
  const entries = run.entries.toSorted((one, other) => one.at - other.at);
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
  if (mails.length > 0) conclude(mails);
}

const TEXTS = {
  armed: () => 'You did this. The session ends four seconds after its last request.',
  unnoticed: ({ minute }) =>
    `C is gone, and Redis has not reported it. B still has the session: a sweep looks there at ${minute ? timeOf(minute) : 'the full minute'}, or as soon as the library notices that it heard nothing.`,
  expired: ({ instance }) =>
    `The end is recorded in the stream, and A keeps the data. ${named(instance)} gets the event.`,
  attempt: ({ instance, attempt }) => `${named(instance)} calls the handler, attempt ${attempt}.`,
  failed: () => 'The handler throws. The event stays, and is tried again after a pause.',
  killed: ({ instance }) =>
    `${named(instance)} is killed, in the middle of the handler. Its hold on the event ends after five seconds.`,
  'dead-letter': () =>
    'The third failure. The event is a dead letter now, with a copy of the cart, and holds up nobody.',
  replayed: () => 'The mail server works again. The dead letter goes back to its handler.',
  mail: ({ to, isRepeated }) =>
    isRepeated ? 'This mail is in the outbox already: it is not written again.' : `The mail to ${to} is in the outbox:`,
};

const TITLES = {
  armed: 'Begun',
  unnoticed: 'Over, unnoticed',
  expired: 'Expired',
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

function conclude(mails) {
  run.isDone = true;
  const isWhole = JSON.stringify(mails[0].items) === JSON.stringify(run.items ?? mails[0].items);
  const isOnce = mails.filter(({ isRepeated }) => !isRepeated).length <= 1;
  set(
    'verdict',
    isWhole && isOnce ? 'Lost: nothing. One mail, with the whole cart.' : 'Something was lost: please report this.',
  );
}

/** Redis cannot tell of its own freeze: this timeline is what the browser sees. */
async function freeze(current) {
  clear({ fault: 'frozen' });
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
