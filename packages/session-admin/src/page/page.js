import { readOverview } from './api.js';
import { $, attempt, fact, foreign, make, startDialog, tell } from './dom.js';
import { showDeadlines, startDeadlines } from './deadlines.js';
import { showGroups, showLetters, startLetters } from './events.js';
import { offerSearches, showUsers, startUsers } from './users.js';
import { count, duration } from './words.js';

const VIEWS = { users: showUsers, groups: showGroups, letters: showLetters, deadlines: showDeadlines };

const HEALTH = {
  up: 'Sessions work.',
  degraded: 'Sessions work, but something needs attention:',
  down: 'Sessions do not work:',
};

async function refresh() {
  const overview = await readOverview();
  const { username, sessions, deadlines, groupsOf, versions } = overview;
  $('who').replaceChildren(...(username === null ? [] : ['You are ', foreign(username)]));
  if (sessions) offerSearches(sessions);
  const { state, reasons } = sessions?.health ?? { state: '', reasons: [] };
  $('health').textContent = HEALTH[state] ?? '';
  $('health').className = `health ${state}`;
  $('reasons').replaceChildren(...reasons.map((textContent) => make('li', { textContent })));
  $('facts').replaceChildren(...factsOf(overview).flatMap(([name, value]) => fact(name, value)));
  $('versions').textContent = `nest-session ${versions.nestSession}, Node.js ${versions.node}`;
  const isThere = {
    users: sessions !== null,
    groups: groupsOf.length > 0,
    letters: groupsOf.length > 0,
    deadlines: deadlines !== null,
  };
  for (const link of document.querySelectorAll('[data-view]')) link.parentElement.hidden = !isThere[link.dataset.view];
  return isThere;
}

function factsOf({ sessions, deadlines }) {
  const groups = [...(sessions?.store?.groups ?? []), ...(deadlines?.store?.groups ?? [])];
  const sum = (name) => groups.reduce((total, group) => total + group[name], 0);
  const waiting = deadlines?.waiting?.reduce((total, each) => total + each.count, 0);
  const overdue = Math.max(0, sessions?.store?.overdue ?? 0);
  return [
    ...(sessions?.store ? [['Live sessions', count(sessions.store.count, 'session')]] : []),
    ...(overdue > 0 ? [['Not yet cleaned up', `since ${duration(overdue)}`]] : []),
    ...(deadlines?.waiting ? [['Waiting deadlines', count(waiting, 'deadline')]] : []),
    ...(groups.length > 0
      ? [
          ['Dead letters', count(sum('deadLetters'), 'dead letter')],
          ['Unread events', count(sum('lag'), 'event')],
        ]
      : []),
  ];
}

async function show() {
  const isThere = await refresh();
  const [name, query = ''] = location.hash.slice(1).split('?');
  const view = isThere[name] ? name : Object.keys(isThere).find((each) => isThere[each]);
  for (const section of document.querySelectorAll('.view')) section.hidden = section.id !== view;
  for (const link of document.querySelectorAll('[data-view]')) {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (view) await VIEWS[view](new URLSearchParams(query));
  else tell('This application has neither sessions nor deadlines.');
}

startDialog();
startUsers();
startLetters();
startDeadlines();
async function showAnew() {
  tell('');
  await attempt(show);
}

$('refresh').addEventListener('click', () => {
  void showAnew().then(() => $('error').textContent === '' && tell('Up to date.'));
});
addEventListener('hashchange', () => void showAnew());
await attempt(show);
document.body.dataset.ready = 'yes';
