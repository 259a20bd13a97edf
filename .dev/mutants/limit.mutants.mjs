// Mistakes in the limit of the sessions of a principal: in the script that decides with one partition, and in the ledger
// that several need.
const byContract = (test) => ({ spec: 'redis-session.contract.spec.ts', test });
const byPartitions = (test) => ({ spec: 'partitioned-session.contract.spec.ts', test });
const byLedger = (test) => ({ spec: 'max-sessions.spec.ts', test });

const ENDS_OLDEST = 'a limit of sessions ends the session whose sign-in is the longest ago, with its event';
const REFUSES = 'a limit of sessions refuses one more, and changes nothing';
const COUNTS_DEAD = 'a limit of sessions is not reached by sessions that are over';
const AT_ONCE = 'a limit of sessions holds for sign-ins at once, of which each ends one session';

const decidedAtOnce = [
  {
    mistake: 'A limit lets one session more than it says stay',
    code: 'tonumber(most) or most - 1, 0, 0',
    instead: 'tonumber(most) or tonumber(most), 0, 0',
    killedBy: byContract(ENDS_OLDEST),
  },
  {
    mistake: 'A limit refuses one session later than it says',
    code: "return live == most_others and 'refused' or nil",
    instead: "return live > most_others and 'refused' or nil",
    killedBy: byContract(REFUSES),
  },
  {
    mistake: 'A limit counts sessions that have expired',
    code: `if counts and redis.call('EXISTS', prefix .. 'sessions:expires:' .. page[i]) == 1 then live = live + 1 end`,
    instead: 'if counts then live = live + 1 end',
    killedBy: byContract(COUNTS_DEAD),
  },
  {
    mistake: 'A limit counts the session itself when its principal signs in again',
    code: 'page[i] ~= own and tonumber(page[i + 1]) > epoch',
    instead: 'tonumber(page[i + 1]) > epoch',
    killedBy: byContract(
      'a limit of sessions counts a session that signs in again, is rotated or gets its principal again once',
    ),
  },
  {
    mistake: 'A limit ends the sessions that signed in last',
    code: "redis.call('ZRANGE', set, 0, math.min(size - looked, 50) - 1)",
    instead: "redis.call('ZRANGE', set, 0, math.min(size - looked, 50) - 1, 'REV')",
    killedBy: byContract(ENDS_OLDEST),
  },
  {
    mistake: 'The bucket of a session is not listed again after the limit has ended its last member',
    in: 'create-session',
    code: 'is_new = bucket ~= nil',
    instead: '',
    killedBy: byContract('are one expired event for a session that took the place of the only other one of its minute'),
  },
].map((mutant) => ({ in: 'includes/limit', store: 'Redis', ...mutant }));

const inLedger = [
  {
    mistake: 'A ledger has one place more than the limit says',
    code: 'math.max(#list - waiting - most, 0)',
    instead: 'math.max(#list - waiting - most - 1, 0)',
    killedBy: byPartitions(ENDS_OLDEST),
  },
  {
    mistake: 'A place may have to end for several sign-ins',
    code: '(not ender or ender == own)',
    instead: 'true',
    killedBy: byLedger('ends no session for which another sign-in may still leave room'),
  },
  {
    mistake: 'A place does not count before its session is stored',
    code: 'if place ~= own and (not ender or ender == own) then',
    instead:
      'if place ~= own and latest_of(place) > now then waiting = waiting + 1 elseif place ~= own and (not ender or ender == own) then',
    killedBy: byPartitions(AT_ONCE),
  },
  {
    mistake: 'A sign-in ends what another one may leave',
    code: 'surplus - extra',
    instead: 'surplus',
    killedBy: byLedger('ends no session for which another sign-in may still leave room'),
  },
  {
    mistake: 'A place does not learn the new id of its session',
    code: 'table.insert(own.ids, entry)',
    instead: '',
    killedBy: byLedger('learns the new id of a session that a request rotates without knowing of its principal'),
  },
  {
    mistake: 'A late request takes the place of a session that was rotated',
    code: 'return by_field[field] or add(',
    instead: 'return add(',
    killedBy: byLedger('keeps the place of a session that was rotated, when a late request knows it by its first id'),
  },
  {
    mistake: 'A session has two places while two requests list it under its principal',
    code: "if replaced ~= '' and replaced ~= id then table.insert(own.ids, { id = replaced }) end",
    instead: '',
    killedBy: byLedger('has one place for a session that two requests list under its principal at once'),
  },
  {
    mistake: 'A sign-in that comes too late takes the id of its session from the place',
    code: 'table.insert(own.ids, entry)',
    instead: 'own.ids = { { id = replaced, latest = 0 }, entry }',
    killedBy: byLedger('keeps the place of a session to which somebody signs in twice at once'),
  },
  {
    mistake: 'A sign-in takes the room of another one, which has found the session of its place to be over',
    code: "if most and latest_of(own) <= now then own.ender = '-' end",
    instead: '',
    killedBy: byLedger('takes no room from a sign-in that has found the session of the place to be over'),
  },
  {
    mistake: 'A sign-in that fails leaves the place of its session open',
    in: 'settle-place',
    code: 'drop(id)',
    instead: '',
    killedBy: byLedger('keeps no place for a session that has ended while somebody signed in to it'),
  },
  {
    mistake: 'A sign-in that fails takes the time from another one of its session',
    in: 'settle-place',
    code: 'drop(id)',
    instead: 'drop(id) for _, each in ipairs(own.ids) do each.latest = each.latest and 0 end',
    killedBy: byLedger('keeps the place of a sign-in while another one of the same session fails'),
  },
  {
    mistake: 'A sign-in whose session is gone leaves a place for the id that it had',
    in: 'settle-place',
    code: 'if each.latest then',
    instead: 'if each then',
    killedBy: byLedger('gives back the place of a sign-in that found its session gone'),
  },
  {
    mistake: 'A place that was taken for a session that has another one counts as its second',
    in: 'find-sessions',
    code: ", ARGV[1] .. 'sessions:forwarded:' .. id",
    instead: '',
    killedBy: byLedger('does not wait for a sign-in to a session that was rotated since then'),
  },
  {
    mistake: 'A sign-in relies on what another one was to end, whose session is over',
    in: 'SessionLedger',
    code: 'isOver(each) && !each.makesRoom',
    instead: 'isOver(each)',
    killedBy: byLedger('ends what another sign-in was to end when the session of that one is over'),
  },
  {
    mistake: 'A sign-in that is answered 409 because of its token ends another session',
    in: 'SessionLedger',
    code: '(await Promise.all(marks)).includes(true)',
    instead: 'false',
    killedBy: byLedger(
      'ends nothing for a session that is not created, because its client presents a token that was replaced',
    ),
  },
  {
    mistake: 'A session is rotated without a place of its principal, of which the request does not know',
    in: 'save-session',
    code: "if is_principal and entry.value ~= roomy then return { 'unplaced', entry.value } end",
    instead: '',
    killedBy: byLedger('learns the new id of a session that a request rotates without knowing of its principal'),
  },
  {
    mistake: 'A session is stored after the time of its place',
    in: 'includes/in-time',
    code: "if latest and now > tonumber(latest) then return { 'late' } end",
    instead: '',
    killedBy: byLedger('lets nobody be stored after the time of the place'),
  },
  {
    mistake: 'The first sign-in looks for the sessions of its principal in one partition only',
    in: 'SessionLedger.#sessionsOf',
    code: 'this.partitions.all.map(',
    instead: 'this.partitions.all.slice(0, 1).map(',
    beyondModel: 'it limits from the beginning',
    killedBy: byLedger('knows the sessions that were there before it'),
  },
  {
    mistake: 'A session that has ended keeps its place',
    in: 'SessionLedger.#makeRoom',
    code: '!hasEnded() && !all.some(isOver)',
    instead: '!hasEnded()',
    killedBy: byPartitions(COUNTS_DEAD),
  },
  {
    mistake: 'A repeated sign-in that finds its session gone gives up the place of what was stored before',
    in: 'SessionLedger.#release',
    code: ': sign.wasKnown',
    instead: ': false',
    killedBy: byLedger(
      'keeps the place of a new session when its request, whose first attempt had no reply, finds it gone',
    ),
  },
  {
    mistake: 'A sign-in that is refused keeps its place',
    in: 'SessionLedger.#write',
    code: `await this.#release(sign, ended);
      return { outcome: ended };`,
    instead: 'return { outcome: ended };',
    killedBy: byLedger('gives back the place of a sign-in that is refused'),
  },
].map((mutant) => ({ in: 'reserve-place', store: 'Redis with four partitions', ...mutant }));

const inMemory = [
  {
    mistake: 'In memory, a limit lets one session more than it says stay',
    code: 'slice(limit.atMost - 1)',
    instead: 'slice(limit.atMost)',
    killedBy: { spec: 'map-session.repository.spec.ts', test: ENDS_OLDEST },
  },
  {
    mistake: 'In memory, a limit counts the session itself when its principal signs in again',
    code: '.filter((each) => each.id !== id)',
    instead: '',
    killedBy: {
      spec: 'map-session.repository.spec.ts',
      test: 'a limit of sessions counts a session that signs in again, is rotated or gets its principal again once',
    },
  },
].map((mutant) => ({ in: 'MapSessionStore.#makesRoom', store: 'memory', ...mutant }));

export const limits = [...decidedAtOnce, ...inLedger, ...inMemory];
