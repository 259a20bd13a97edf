// The page of the demo. It never polls: what it shows comes from the answers to the buttons and from the event stream of
// its session.
const $ = (id) => document.getElementById(id);
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/** The session as the server last told us, and when it ends by this browser's clock. */
let session = { isNew: true, items: [] };
let endsAt = 0;
/** The id of the session shown last. */
let shownId;
/** The event that told the end of that session. */
let ending;
/** Of that session: no other events reach this page. */
let stream;
const seenEvents = new Set();
// Other tabs share the session: they are told, since asking would keep it alive.
const tabs = new BroadcastChannel('nest-session-demo');

async function request(method, path, body, headers = {}) {
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  const answer = text === '' ? undefined : JSON.parse(text);
  if (!response.ok) throw new Error(answer?.message ?? response.statusText);
  return answer;
}

/** A request that changes the session. Its token is a fresh one: after a sign-in in another tab, one from before is invalid. */
async function change(method, path, body) {
  const { token } = await request('GET', '/csrf');
  return request(method, path, body, { 'X-CSRF-Token': token });
}

/** Does what a button stands for, then shows the session as it is now. */
async function act(work) {
  note('');
  try {
    await work();
    await refresh();
  } catch (error) {
    note(error.message, true);
  }
}

async function refresh() {
  const view = await request('GET', '/session');
  const message = { view, endsAt: Date.now() + view.maxInactiveInterval * 1000 };
  show(message);
  tabs.postMessage(message);
}

function show(message) {
  session = message.view;
  endsAt = message.endsAt;
  if (!session.isNew) {
    if (session.id !== shownId) watch();
    shownId = session.id;
    ending = undefined;
  }
  render();
}

function render() {
  const { isNew, id, principalName, items, maxInactiveInterval } = session;
  const isOver = ending !== undefined;
  $('id').textContent = isNew || isOver ? 'none' : id;
  $('id').title = $('id').textContent;
  $('login').hidden = principalName !== undefined && !isOver;
  $('signed-in').hidden = !$('login').hidden;
  $('principal').textContent = principalName ?? '';
  const inCart = isOver ? [] : items;
  $('items').replaceChildren(...inCart.map(chip));
  $('no-items').hidden = inCart.length > 0;
  $('count').textContent = inCart.length > 0 ? `${inCart.length} items`.replace(/^1 items/, '1 item') : '';
  $('empty').disabled = inCart.length === 0;
  for (const radio of document.getElementsByName('lifetime')) {
    radio.checked = !isNew && !isOver && Number(radio.value) === maxInactiveInterval;
  }
  tick();
}

function tick() {
  const isAlive = !session.isNew && !ending;
  const rest = isAlive ? Math.max(0, endsAt - Date.now()) : 0;
  const whole = session.maxInactiveInterval * 1000;
  $('ring').style.setProperty('--rest', isAlive ? (100 * rest) / whole : 0);
  set('rest', isAlive ? minutes(Math.ceil(rest / 1000)) : '–');
  set('rest-of', isAlive ? `of ${minutes(whole / 1000)}` : '');
  set('state', stateOf(isAlive, rest));
}

function stateOf(isAlive, rest) {
  if (isAlive) return rest > 0 ? 'Alive: everything you do starts the time anew.' : 'Time is up …';
  if (ending?.type === 'expired') return 'Expired. The application was told, with the cart.';
  if (ending) return 'Signed out. The application was told.';
  return 'No session yet: it begins with what you do first.';
}

// Only a change may reach screen readers.
function set(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function chip(text) {
  const item = document.createElement('li');
  item.textContent = text;
  return item;
}

function note(text, isProblem = false) {
  $('note').textContent = text;
  $('note').classList.toggle('problem', isProblem);
}

function onEvent(event) {
  // A stream begins with the events so far.
  if (seenEvents.has(event.id)) return;
  seenEvents.add(event.id);
  const isEnd = event.type === 'expired' || event.type === 'deleted';
  const item = $('event').content.firstElementChild.cloneNode(true);
  const find = (selector) => item.querySelector(selector);
  item.className = event.type;
  find('.type').textContent = event.type;
  find('time').textContent = clock.format(event.at);
  find('time').dateTime = new Date(event.at).toISOString();
  find('.text').textContent = textOf(event, isEnd);
  find('.chips').append(...(isEnd ? event.items.map(chip) : []));
  find('code').textContent = event.sessionId;
  $('events').prepend(item);
  $('no-events').hidden = true;
  // The answer to a request may have told before that there is no session any more.
  if (isEnd && event.sessionId === shownId) {
    ending = event;
    render();
  }
}

function textOf({ type, principalName, items, dataLost }, isEnd) {
  const whose = principalName === undefined ? 'A visitor’s session' : `The session of ${principalName}`;
  if (type === 'created') return 'A session was stored for the first time.';
  if (type === 'id-changed') return `${whose} goes on under a new id: nobody who knew the old one can use it.`;
  if (isEnd && dataLost) return 'A session ended; its data was gone before anybody heard of it.';
  const how = type === 'expired' ? 'ran out' : 'was ended';
  return items.length === 0 ? `${whose} ${how}, with nothing in the cart.` : `${whose} ${how}. Its cart held:`;
}

function onSubmit(form, work) {
  $(form).addEventListener('submit', (event) => {
    event.preventDefault();
    const { name } = event.target.elements;
    void act(() => work(name.value || name.placeholder)).then(() => (name.value = ''));
  });
}

onSubmit('login', (name) => change('POST', '/login', { name }));
onSubmit('add', (name) => request('POST', '/cart', { name }));
onAction('logout', 'click', () => change('POST', '/logout'));
onAction('empty', 'click', () => change('DELETE', '/cart'));
onAction('lifetime', 'change', ({ target }) =>
  change('PUT', '/session', { maxInactiveInterval: Number(target.value) }),
);
onAction('race', 'click', addTen);

function onAction(id, type, work) {
  $(id).addEventListener(type, (event) => void act(() => work(event)));
}

async function addTen() {
  // Ten requests without a session would be given one each.
  if (session.isNew || ending) await change('PUT', '/session', { maxInactiveInterval: 1800 });
  const before = await request('GET', '/session');
  const names = Array.from({ length: 10 }, (_, index) => `apple ${index + 1}`);
  await Promise.all(names.map((name) => request('POST', '/cart', { name })));
  const after = await request('GET', '/session');
  note(`Ten requests sent at once, ${after.items.length - before.items.length} items more in the cart.`);
}

function watch() {
  stream?.close();
  stream = new EventSource('/events');
  stream.addEventListener('message', ({ data }) => onEvent(JSON.parse(data)));
  stream.addEventListener('open', () => showStream('live'));
  stream.addEventListener('error', onStreamError);
}

/** The browser connects again, unless the server has refused that: then the session ended while we did not watch. */
function onStreamError() {
  const isRefused = stream.readyState === EventSource.CLOSED;
  showStream(isRefused ? 'idle' : 'reconnecting');
  if (isRefused) void act(() => undefined);
}

function showStream(state) {
  $('stream').textContent = state;
  $('stream').classList.toggle('live', state === 'live');
}

tabs.addEventListener('message', ({ data }) => show(data));
setInterval(tick, 250);
void act(() => undefined);
