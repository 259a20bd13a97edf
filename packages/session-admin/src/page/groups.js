import { read, remove } from './api.js';
import { $, button, confirmed, facts, foreign, instant, make, tell } from './dom.js';
import { count, duration, when } from './words.js';

const ABOUT = { sessions: 'events of sessions', deadlines: 'deadlines that come' };

export async function showGroups(_query, rights) {
  const { groups } = await read('groups');
  $('group-list').replaceChildren(...groups.map((group) => card(group, rights)));
  if (groups.length === 0)
    $('group-list').append(make('li', { className: 'card', textContent: 'There are no groups.' }));
}

function card(group, rights) {
  const { name, of, lag, oldestUnread, pending, retrying, dropped, lostDeadLetters, consumers } = group;
  const unread = oldestUnread ? [`${count(lag, 'event')}, the oldest from `, instant(oldestUnread, when)] : 'nothing';
  return make(
    'li',
    { className: 'card' },
    make('h3', {}, foreign(name)),
    facts([
      ['Handles', ABOUT[of]],
      ['Still to read', unread],
      ['In work', count(pending, 'event')],
      ['Waits for a retry', count(retrying, 'event')],
      [
        'Lost',
        dropped + lostDeadLetters === 0
          ? 'nothing'
          : `${count(dropped, 'event')}, ${count(lostDeadLetters, 'dead letter')}`,
      ],
      ['Instances', consumers.length === 0 ? 'none' : make('ul', {}, ...consumers.map(instanceOf))],
    ]),
    rights.removeGroup
      ? make(
          'div',
          { className: 'bar' },
          button('Remove', () => removeGroup(group, rights), {
            className: 'danger',
            label: `Remove: group ${name}`,
          }),
        )
      : '',
  );
}

function instanceOf({ name, pending, idle }) {
  return make(
    'li',
    {},
    foreign(name),
    `: last heard of ${idle < 1 ? 'now' : `${duration(idle)} ago`}, ${count(pending, 'event')} in work`,
  );
}

async function removeGroup({ name, of }, rights) {
  const text =
    'Events that it has not handled are not kept for it any more. Remove only a group that no instance uses.';
  if (!(await confirmed({ title: `Remove the group ${name}?`, text, yes: 'Remove it' }))) return;
  await remove('groups', { of, name });
  tell('The group is removed.');
  await showGroups(undefined, rights);
}
