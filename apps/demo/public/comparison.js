// The split screen: each button lets both sides go through the same, and shows what each of them has done.
import { $, make } from './dom.js';
import { request } from './requests.js';
import { SCENARIOS } from './scenarios.js';

const SIDES = ['express-session', 'nest-session'];
const VERDICTS = { good: 'Right', slow: 'Slow', wrong: 'Wrong' };
/** Milliseconds between two looks at what goes on, and of the longest one; and how many there are. */
const PAUSE = 1000;
const LONGEST = 3000;
const MOST_LOOKS = 60;

let isRunning = false;
/** The verdicts of each scenario that has been measured, by side. */
const verdicts = new Map();

function card(name, { title, about, why, left, right }, reason) {
  const button = make('button', { id: `run-${name}`, type: 'button', textContent: title });
  button.disabled = reason !== null;
  button.setAttribute('aria-describedby', `about-${name}`);
  button.addEventListener('click', () => void alone(() => run(name)));
  return make(
    'li',
    { className: 'scenario', id: name },
    make(
      'div',
      { className: 'ask' },
      button,
      make('p', { id: `about-${name}`, className: 'quiet', textContent: reason ?? about }),
    ),
    make('div', { className: 'lanes' }, lane(name, SIDES[0], left), lane(name, SIDES[1], right)),
    make('p', { id: `why-${name}`, className: 'quiet', textContent: why, hidden: true }),
    make('p', { id: `note-${name}`, className: 'note problem', role: 'status' }),
  );
}

function lane(name, side, code) {
  return make(
    'div',
    { className: 'lane', id: `${name}-${side}` },
    make('p', { className: 'side', textContent: side }),
    make('pre', {}, make('code', { textContent: code.join('\n') })),
    make('p', { className: 'finding', role: 'status' }),
    make(
      'details',
      { hidden: true },
      make('summary', { textContent: 'The requests' }),
      make('ol', { className: 'requests' }),
    ),
  );
}

/** Does the work unless other work is going on. */
async function alone(work) {
  if (isRunning) return;
  setRunning(true);
  await work();
  setRunning(false);
}

async function run(name) {
  $(`note-${name}`).textContent = '';
  verdicts.delete(name);
  for (const side of SIDES) show(name, side, {});
  try {
    let answer = await request('POST', `/comparison/${name}`);
    showBoth(name, answer);
    for (let looks = 0; answer.run && looks < MOST_LOOKS; looks++) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      answer = await look(answer);
      showBoth(name, answer);
    }
  } catch (error) {
    $(`note-${name}`).textContent = error.message;
    for (const side of SIDES) show(name, side, undefined);
  }
}

/** From the top to the bottom: between two that kill an instance, there is time for it to start again. */
async function runAll() {
  for (const name of Object.keys(SCENARIOS)) if (!$(`run-${name}`).disabled) await run(name);
}

function showScore() {
  const right = (side) => [...verdicts.values()].filter((each) => each[side] === 'good').length;
  $('score').textContent = `Right: ${SIDES.map((side) => `${side} ${right(side)} of ${verdicts.size}`).join(', ')}`;
}

/** The instance that would have answered may be the one that is killed: it answers with an error, or never. */
function look(answer) {
  const signal = AbortSignal.timeout(LONGEST);
  return request('GET', `/comparison/${answer.run}`, undefined, {}, signal).catch(() => answer);
}

function setRunning(value) {
  isRunning = value;
  // Not `disabled`, which would take the focus away.
  for (const button of $('compare').querySelectorAll('button')) button.setAttribute('aria-disabled', value);
}

function showBoth(name, answer) {
  for (const side of SIDES) show(name, side, answer[side]);
  if (SIDES.some((side) => !answer[side].finding)) return;
  verdicts.set(name, Object.fromEntries(SIDES.map((side) => [side, answer[side].finding.verdict])));
  // Not before: it tells how it ends.
  $(`why-${name}`).hidden = false;
  showScore();
}

/** A result without a finding is awaited; without a result, nothing was measured. */
function show(name, side, result) {
  const place = $(`${name}-${side}`);
  const [finding, details, list] = ['.finding', 'details', 'ol'].map((each) => place.querySelector(each));
  const { verdict = '', text = '' } = result?.finding ?? {};
  place.dataset.verdict = verdict;
  const shown = result?.finding ? `${VERDICTS[verdict]}: ${text}` : result ? 'Running …' : '';
  if (finding.textContent !== shown) finding.textContent = shown;
  if (!result?.requests) return;
  details.hidden = false;
  list.replaceChildren(...result.requests.map(line));
}

function line({ method, path, status, took }) {
  return make('li', {}, make('code', { textContent: `${method} ${path}  ${status}  ${took} ms` }));
}

const reasons = await request('GET', '/comparison');
for (const [name, texts] of Object.entries(SCENARIOS)) $('scenarios').append(card(name, texts, reasons[name]));
$('run-all').disabled = Object.values(reasons).every((reason) => reason !== null);
$('run-all').addEventListener('click', () => void alone(runAll));
