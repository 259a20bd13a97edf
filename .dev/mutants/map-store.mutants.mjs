// The same mistakes, where sessions are kept in memory.
const byContract = (test) => ({
  spec: 'map-session.repository.spec.ts',
  test,
});

export const mapStore = [
  {
    mistake: 'In memory, a change does not look whether the session is alive',
    code: 'this.#follow(change.id); const session = this.#alive(id);',
    instead: 'this.#follow(change.id); const session = this.#sessions.get(id);',
    killedBy: byContract('saving does not restore an expired session before the expiry is noticed'),
  },
  {
    mistake: 'In memory, a load is forwarded to the session after the login',
    code: `    const session = this.#alive(id);
    return session && this.#recordOf(session);`,
    instead: `    const session = this.#alive(this.#follow(id).id);
    return session && { ...this.#recordOf(session), id };`,
    killedBy: byContract('rotation ends the old id for loading at once'),
  },
  {
    mistake: 'In memory, an index lists what is over',
    code: '({ deadline, indexes }) => deadline > now && indexes.get(indexName) === value',
    instead: '({ indexes }) => indexes.get(indexName) === value',
    killedBy: byContract('index has no ended session, however it ended'),
  },
  {
    mistake: 'In memory, the end of every session is reported of what has expired',
    in: 'MapSessionStore.endAll',
    code: '.filter((each) => each.deadline > now)',
    instead: '.filter((each) => each.deadline > now || each)',
    beyondModel: 'it ends no session but by its id',
    killedBy: byContract('events record a deletion of each session when every session ends'),
  },
  {
    mistake: 'In memory, a deletion is not recorded',
    code: 'this.#end(session, SessionDeletedEvent);\n',
    instead: 'this.#sessions.delete(session.id);\n',
    killedBy: byContract('events record a deletion by deleteById() once, with the data of the session'),
  },
  {
    mistake: 'In memory, an interval of 0 is reported as an expiry',
    code: 'maxInactiveInterval === 0 ? SessionDeletedEvent : SessionExpiredEvent',
    instead: 'SessionExpiredEvent',
    killedBy: byContract('events record a deletion by an interval of 0 once, with the data of the session'),
  },
  {
    mistake: 'In memory, an end leaves the session',
    code: '    this.#sessions.delete(session.id);\n    this.record(new Ended(',
    instead: '    this.record(new Ended(',
    killedBy: byContract('events record an expiry once, with the data of the session'),
  },
  {
    mistake: 'In memory, a session is created under an id that is taken',
    code: "    if (this.#isTaken(id)) return { outcome: 'collision' };\n",
    instead: '',
    beyondModel: 'its ids are never taken',
    killedBy: byContract(
      'creation draws another id when the first is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'In memory, of the ids that a request presents only the first is looked at for a change of id',
    code: 'if (presentedIds.some(',
    instead: 'if (presentedIds.slice(0, 1).some(',
    killedBy: byContract(
      'creation refuses a late request that presents an id from just before a rotation, whatever else it presents',
    ),
  },
  {
    mistake: 'In memory, a late change of id is forwarded to the session after the login',
    code: 'const isMore = newId !== undefined || absoluteTimeout',
    instead: 'const isMore = absoluteTimeout',
    killedBy: byContract('rotation refuses completely a forwarded save that sets another id'),
  },
  {
    mistake: 'In memory, a late principal is forwarded to the session after the login',
    code: 'absoluteTimeout !== undefined || change.indexes.size > 0;',
    instead: 'absoluteTimeout !== undefined;',
    killedBy: byContract('rotation refuses completely a forwarded save that sets a principal'),
  },
  {
    mistake: 'In memory, a late update is told what the session holds since its change of id',
    code: "      if (isForwarded) return { outcome: 'gone' };\n",
    instead: '',
    killedBy: byContract('rotation returns to requests that loaded the old id nothing saved since'),
  },
  {
    mistake: 'In memory, a change of id that is sent twice does not find that it was done',
    code: 'if (newId !== undefined && this.#forwarding.get(id)?.id === newId) return savedReply(change, session, false);',
    instead: '',
    beyondModel: 'it loses no answers in memory',
    killedBy: byContract('rotation happens once when it is sent twice because its reply was lost'),
  },
  {
    mistake: 'In memory, a change of id takes an id that somebody has',
    code: "    if (newId !== undefined && this.#isTaken(newId)) return { outcome: 'collision' };\n",
    instead: '',
    beyondModel: 'its ids are never taken',
    killedBy: byContract(
      'rotation draws another id when the new one is taken, and leaves the session that has it unchanged',
    ),
  },
  {
    mistake: 'In memory, a change of id forgets the indexes',
    code: '    session.id = newId;\n',
    instead: '    session.id = newId;\n    session.indexes.clear();\n',
    killedBy: byContract('index follows a session through a rotation'),
  },
  {
    mistake: 'In memory, the mark of a change of id stays for ever',
    code: 'until: this.clock.now() + FORWARDED_FOR',
    instead: 'until: Infinity',
    killedBy: byContract('rotation forwards for 60 s, and no longer'),
  },
  {
    mistake: 'In memory, a session that is regenerated keeps what the request did not know of',
    code: 'if (clears) attributes.clear();',
    instead: '',
    beyondModel: 'it regenerates nothing',
    killedBy: byContract(
      'rotation that regenerates removes all attributes, also those of requests that it does not know of',
    ),
  },
  {
    mistake: 'In memory, a late save reaches the session that was regenerated',
    code: 'if (!mark || mark.isClosed)',
    instead: 'if (!mark)',
    beyondModel: 'it regenerates nothing',
    killedBy: byContract('rotation that regenerates forwards nothing of the old id'),
  },
  {
    mistake: 'In memory, an update of an attribute does not compare',
    code: 'if (expected && session.attributes.get(expected.name) !== expected.text) {',
    instead: 'if (expected && this.#isTaken(expected.name)) {',
    killedBy: byContract('attribute update writes nothing when the stored text is another one, and returns that text'),
  },
  {
    mistake: 'In memory, a save changes the index before it compares',
    code: '    if (expected && session.attributes',
    instead: '    apply(change.indexes, session.indexes);\n    if (expected && session.attributes',
    killedBy: byContract(
      'index is not changed by an update that is a conflict, nor by a rotation to an id that is taken',
    ),
  },
  {
    mistake: 'In memory, a save renews a session that is to be kept idle',
    code: 'if (!keepsIdle) this.#renew(session);',
    instead: 'if (keepsIdle || !keepsIdle) this.#renew(session);',
    killedBy: byContract('saving does not renew a session that the request keeps idle'),
  },
  {
    mistake: 'In memory, the time of the last access goes back with the clock',
    code: 'session.lastAccessedTime = Math.max(session.lastAccessedTime, now);',
    instead: 'session.lastAccessedTime = now;',
    beyondModel: 'its clock does not go back',
    killedBy: byContract('saving never sets the time of the last access back when the clock steps back'),
  },
  {
    mistake: 'In memory, nothing ends at its absolute end',
    code: 'endAfter(session.maxInactiveInterval, accessed), session.absoluteExpiry',
    instead: 'endAfter(session.maxInactiveInterval, accessed), Infinity',
    killedBy: byContract('absolute timeout is not postponed by a touch'),
  },
  {
    mistake: 'In memory, a sign-in keeps what is bound to the visitor',
    code: 'if (signIn) for (const name of attributes.keys())',
    instead: 'if (false) for (const name of attributes.keys())',
    killedBy: byContract(
      'a sign-in removes what is bound to the visitor, also what it does not know of, unless it sets that',
    ),
  },
  {
    mistake: 'In memory, a late save plants what the sign-in has removed',
    code: 'mark.kept ? [...seals, mark.kept] : seals',
    instead: 'seals',
    killedBy: byContract('a sign-in leaves out of late saves what it has not kept, and saves the rest'),
  },
  {
    mistake: 'In memory, the absolute timeout counts from the creation although somebody signed in',
    in: 'startOf',
    code: 'Math.max(creationTime, authenticatedAt)',
    instead: 'Math.min(creationTime, authenticatedAt)',
    killedBy: byContract('a sign-in lets the absolute timeout count from it'),
  },
  {
    mistake: 'In memory, the time of a sign-in outlives its principal',
    code: 'else if (change.signsOut && !isForwarded)',
    instead: 'else if (false)',
    killedBy: byContract('a sign-in is forgotten with its principal, and the session keeps its end'),
  },
  {
    mistake: 'In memory, each rotation leaves an entry for ever',
    in: 'MapSessionStore.claimExpired',
    code: 'if (mark.until <= now) this.#forwarding.delete(id);',
    instead: 'void [id, mark];',
    killedBy: byContract('keeps nothing of an id that was replaced a minute ago, each time'),
  },
].map((mutant) => ({ store: 'memory', in: 'MapSessionStore', ...mutant }));
