// Mistakes in the property bag of express-session, and in how its old sessions are taken over.
const inSpec = (spec, test) => ({ killedBy: { spec: `${spec}.spec.ts`, test } });
const byBag = (test) => inSpec('property-bag', `req.session on express ${test}`);
const byMethods = (test) => inSpec('methods', test);
const byTakeover = (test) => inSpec('takeover', `the takeover of a session of connect-redis ${test}`);

const byRevocation = (test) => inSpec('takeover', `on fastify with 4 partition(s), a session of connect-redis ${test}`);

const bag = [
  {
    mistake: 'The attributes of the library are properties',
    in: 'propertyNamesOf',
    code: 'session.attributeNames.filter(isOwn)',
    instead: 'session.attributeNames',
    ...byBag('shows the timeouts and the principal of the session, and has no property for them'),
  },
  {
    mistake: 'A property may be set under a name of the library',
    in: 'BagValues.set',
    code: 'if (!isOwn(name))',
    instead: 'if (false)',
    ...byBag('refuses values under the names of its members, and under names of the library'),
  },
  {
    mistake: 'A client signs in by the names in a body that is assigned to the session',
    in: 'setMember',
    code: 'if (instead !== undefined)',
    instead: 'if (instead !== undefined) Reflect.set(valuesOf(bag).session, name, value); if (false)',
    ...inSpec('property-bag', 'and says what to write'),
  },
  {
    mistake: 'A deep merge into the session reaches what all sessions share',
    in: 'HANDLER',
    code: 'SHARED.includes(name) ? undefined : Reflect.get(bag, name)',
    instead: 'Reflect.get(bag, name)',
    ...byBag('lets no deep merge of {"__proto__":{"polluted":1}} reach other sessions'),
  },
  {
    mistake: 'A property that is assigned its own value undoes the change of another request',
    in: 'BagValues.set',
    code: 'this.session.assignAttribute(name, value)',
    instead: 'this.session.setAttribute(name, value)',
    ...inSpec(
      'equal-values',
      'a property of a session in memory keeps the change of a faster request when a slower one assigns the value that it has loaded',
    ),
  },
  {
    mistake: 'An object that was equal when it was assigned is not watched',
    in: 'TrackedAttributes.assign',
    code: 'else this.#entries.set(name, { name, value, assigned: false, text, isRaw: false });',
    instead: '',
    ...inSpec(
      'tracked-session-assignments',
      'writes an object that was equal when it was assigned, and changed in place afterwards',
    ),
  },
  {
    mistake: 'The value that was loaded is lost when it is assigned again during the save of another',
    in: 'TrackedAttributes.assign',
    code: 'this.#unconfirmed?.has(name) || ',
    instead: '',
    ...inSpec(
      'tracked-session-assignments',
      'writes the value that was loaded when it is assigned during the save of another',
    ),
  },
  {
    mistake: 'A Secure cookie is sent over http',
    in: 'CookieCheck.withholds',
    code: 'cookie?.secure !== true ||',
    instead: 'true ||',
    ...inSpec('takeover', 'keeps the old cookie where the new one is Secure and would be sent over http'),
  },
  {
    mistake: 'A header of any client says that its request came over https',
    in: 'CookieCheck.withholds',
    code: 'isSecure(request)',
    instead: "(isSecure(request) || request.headers['x-forwarded-proto'] === 'https')",
    ...inSpec('cookie.check', 'also when a proxy that nobody trusts says https, and the log says so once'),
  },
  {
    mistake: 'The path of the cookie is a prefix of any text',
    in: 'isBelow',
    code: "return path.length === cookiePath.length || cookiePath.endsWith('/') || path[cookiePath.length] === '/';",
    instead: 'return true;',
    ...inSpec(
      'cookie.check',
      'on express, a request outside of the path of the cookie has no session, whatever cookie it has',
    ),
  },
  {
    mistake: 'The session before a regeneration is the one after it',
    in: 'RequestBag.regenerate',
    code: 'this.#leave(id, values);',
    instead: '',
    ...byMethods('regenerate() leaves the previous object readable, and what is set there goes nowhere'),
  },
  {
    mistake: 'What a save writes while the session is regenerated stays in the session',
    in: 'SessionState.settle',
    code: 'this.#written.saved(save.attributes);',
    instead: 'this.attributes.saved(save.attributes);',
    ...inSpec('tracked-session-sign-in', 'that starts anew during a save keeps nothing of what that save writes'),
  },
  {
    mistake: 'Of two regenerations, one during the save of the other, only the first clears',
    in: 'SessionState.settle',
    code: 'if (this.#written === this.attributes) this.#clears = false;',
    instead: 'if (save.kind) this.#clears = false;',
    ...inSpec('tracked-session-sign-in', 'that starts anew again during a save is cleared again'),
  },
  {
    mistake: 'The lifetime of a cookie outlives a regeneration',
    in: 'RequestBag.regenerate',
    code: 'session.maxInactiveInterval = this.#settings.timeoutOf(undefined);',
    instead: '',
    ...byMethods('regenerate() undoes a lifetime that the session had'),
  },
  {
    mistake: 'A visitor gets a session for a lifetime alone',
    in: 'RequestBag.#changeLifetime',
    code: 'if (session.isNew) return void (this.#maxAge = seconds);',
    instead: '',
    ...byMethods('cookie by itself does not make a visitor have a session'),
  },
  {
    mistake: 'A changed lifetime does not reach the browser',
    in: 'RequestBag.#changeLifetime',
    code: 'this.#holder.session.sendAgain();',
    instead: '',
    ...byMethods('cookie is sent again when the lifetime of a session is changed, and only then'),
  },
  {
    mistake: 'req.session = null saves what was changed before it',
    in: 'RequestBag',
    code: 'else this.#session.discard();',
    instead: '',
    ...byMethods('req.session = null keeps the session in the store and drops the changes of the request'),
  },
  {
    mistake: 'The principal stays when Passport has signed its user out',
    in: 'PrincipalRecorder.record',
    code: 'if (name !== session.principalName)',
    instead: 'if (name !== undefined && name !== session.principalName)',
    ...inSpec('principal', 'the user of Passport is the principal until it is removed'),
  },
  {
    mistake: 'endAll() ends the session that it must keep, when that is rotated and given as req.session',
    in: 'idsOf',
    code: 'const shown = shownBy(session);',
    instead: 'const shown = session;',
    ...inSpec(
      'principal',
      'Sessions on express keeps the session that a request excepts, also when it is rotated in the same request',
    ),
  },
  {
    mistake: 'An update of the user of Passport leaves the principal as it was',
    in: 'PrincipalRecorder.keeping',
    code: 'if (!rule.mayRead(name)) return update;',
    instead: 'return update;',
    ...inSpec('principal', 'refuses to make another user the principal, because it stores the attribute alone'),
  },
  {
    mistake: 'An update that changes the user of Passport in place is noticed too late',
    in: 'PrincipalRecorder.keeping',
    code: 'const before = rule.nameIn({ ...others, [name]: current }); const value = update(current);',
    instead: 'const value = update(current); const before = rule.nameIn({ ...others, [name]: current });',
    ...inSpec(
      'principal',
      'refuses to make another user in the same object the principal, because it stores the attribute alone',
    ),
  },
];

const takeover = [
  {
    mistake: 'A cookie that nobody signed takes a session over',
    in: 'verified',
    code: 'timingSafeEqual(presented, expected)',
    instead: 'presented.length === expected.length',
    ...byTakeover('demands a signature'),
  },
  {
    mistake: 'Of several secrets only the first counts for old cookies',
    in: 'verified',
    code: 'secrets.find((each) =>',
    instead: 'secrets.slice(0, 1).find((each) =>',
    ...byTakeover('accepts the signature of an older secret, by which other instances derive the same session'),
  },
  {
    mistake: 'An old session can be taken over again',
    in: 'take-over-session',
    code: "if most == 0 or most == -2 or redis.call('EXISTS', KEYS[8]) == 1 then return { 'gone' } end",
    instead: '',
    ...byTakeover('happens once: after a sign-out the old cookie opens nothing, although the old entry is there again'),
  },
  {
    mistake: 'A session that was not taken over outlives the end of every session',
    in: 'take-over-session',
    code: "redis.call('EXISTS', unpack(KEYS, 9))",
    instead: "redis.call('EXISTS', '', unpack(KEYS, 10))",
    ...byRevocation('ends with every session, on every instance, although it was not taken over'),
  },
  {
    mistake: 'A session that was not taken over outlives the end of all sessions of its principal',
    in: 'RedisSessionRepository.endListed',
    code: 'if (this.#extension.takeover) await this.#listed.refuseTakeovers(indexName, hashOfValue(value));',
    instead: '',
    ...byRevocation('ends with all others of its principal, on every instance, although it was not taken over'),
  },
  {
    mistake: 'A session that was ended before its takeover has a place among those of its principal',
    in: 'RedisForeignSessions.move',
    code: "if (principal && outcome === 'refused') await this.#ledger.leave(id, principal);",
    instead: '',
    ...byRevocation('that was ended takes no place of the sessions that its principal may have'),
  },
  {
    mistake: 'The mark of a takeover ends before the old entry',
    in: 'take-over-session',
    code: "redis.call('SET', KEYS[8], '', 'PX', most)",
    instead: "redis.call('SET', KEYS[8], '', 'PX', 60000)",
    ...byTakeover('leaves a mark that lives as long as the old entry would have'),
  },
  {
    mistake: 'The old entry stays',
    in: 'RedisForeignSessions.move',
    code: 'await this.#connection.run((client) => client.unlink(key), key);',
    instead: '',
    ...byTakeover('has removed the old entry when the response leaves'),
  },
  {
    mistake: 'The old entry stays when the session was taken over before',
    in: 'RequestSessionLoader.#move',
    code: 'await foreign.move(id);',
    instead: 'if (!existing) await foreign.move(id);',
    ...byTakeover('is completed by the next request when a process ended before the old entry was removed'),
  },
  {
    mistake: 'A session that is taken over lives longer than the old one',
    in: 'includes/new-session',
    code: 'if most and (not ends_at or now + most < ends_at) then ends_at = now + most end',
    instead: '',
    ...byTakeover('gives the session as its end the old time to live, when it is earlier than the timeout'),
  },
  {
    mistake: 'A takeover counts as an access',
    in: 'RequestSessionLoader.#touchOf',
    code: 'if (foreign) return new SessionTouch(() => this.#lookAgain(session), true, true);',
    instead: 'if (foreign) return SessionTouch.of(this.repository, session, true, true);',
    ...byTakeover('gives the session as its end the old time to live, when it is earlier than the timeout'),
  },
  {
    mistake: 'The browser forgets the old cookie although it got no new one',
    in: 'ResponseCommit.#addToken',
    code: 'if (foreign && (token || this.isSessionDeleted || !foreign.wasFound)) {',
    instead: 'if (foreign) {',
    ...inSpec('takeover', 'keeps the old cookie where the new one cannot be sent'),
  },
  {
    mistake: 'A request that keeps the session idle does not get the new cookie',
    in: 'SessionTouch.cancel',
    code: 'if (!this.isNeeded) this.#touch = undefined;',
    instead: 'this.#touch = undefined;',
    ...byTakeover('sends the new cookie also in a request that keeps the session idle'),
  },
  {
    mistake: 'An old session may hold attributes of the library',
    in: 'isName',
    code: 'isOwn(name)',
    instead: 'true',
    ...byTakeover('takes no attribute of a name that belongs to the library'),
  },
  {
    mistake: 'The second lifetime of a new session is overwritten by the first',
    in: 'RequestBag.#complete',
    code: 'this.#maxAge = undefined;',
    instead: '',
    ...inSpec('lifetimes', 'of each three changes of a new session, the last lifetime is that of the session'),
  },
];

export const expressSession = [...bag, ...takeover];
