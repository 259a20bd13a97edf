import { read, remove, rights } from './api.js';
import { bar, button, card, confirmed, facts, fill, foreign, instant, make, tell } from './dom.js';
import { count, duration } from './words.js';

const ABOUT = { sessions: 'events of sessions', deadlines: 'deadlines that come' };

export async function showGroups() {
  const { groups } = await read('groups');
  fill('group-list', groups.map(cardOf), 'There are no groups.');
}

function cardOf(group) {
  const { name, of, lag, oldestUnread, pending, retrying, dropped, lostDeadLetters, consumers } = group;
  const unread = oldestUnread ? [`${count(lag, 'event')}, the oldest from `, instant(oldestUnread)] : 'nothing';
  const lost = `${count(dropped, 'event')}, ${count(lostDeadLetters, 'dead letter')}`;
  const label = `Remove: group ${name}`;
  return card(
    JSON.stringify([of, name]),
    make('h3', {}, foreign(name)),
    facts([
      ['Handles', ABOUT[of]],
      ['Still to read', unread],
      ['In work', count(pending, 'event')],
      ['Waits for a retry', count(retrying, 'event')],
      ['Lost', dropped + lostDeadLetters === 0 ? 'nothing' : lost],
      ['Instances', consumers.length === 0 ? 'none' : make('ul', {}, ...consumers.map(instanceOf))],
    ]),
    bar(rights.removeGroup && button('Remove', () => removeGroup(group), { className: 'danger', label })),
  );
}

function instanceOf({ name, pending, idle }) {
  const heard = idle < 1 ? 'now' : `${duration(idle)} ago`;
  return make('li', {}, foreign(name), `: last heard of ${heard}, ${count(pending, 'event')} in work`);
}

async function removeGroup({ name, of }) {
  const text =
    'Events that it has not handled are not kept for it any more. Remove only a group that no instance uses.';
  if (!(await confirmed(['Remove the group ', foreign(name), '?'], text, 'Remove it'))) return;
  await remove('groups', { of, name });
  tell('The group is removed.');
  await showGroups();
}
