// Mistakes in what a request does with its session, whatever store there is.
const byContract = (test) => ({ spec: 'map-session.repository.spec.ts', test });
const byRequests = (test) => ({ spec: 'session-http.spec.ts', test });
const byBinding = (test) => ({ spec: 'request-binding.spec.ts', test });
const byValues = (test) => ({ spec: 'attribute-values.spec.ts', test });
const byEnhancers = (test) => ({ spec: 'session-enhancers.spec.ts', test });
const byCsrfGuard = (test) => ({ spec: 'csrf.guard.spec.ts', test });
const byCsrfTokens = (test) => ({ spec: 'csrf-token.spec.ts', test });
const byUpdates = (test) => ({ spec: 'attribute-updates.spec.ts', test });
const byTurns = (test) => ({ spec: 'turn.queue.spec.ts', test });
const byUpdatesAtOnce = (test) => ({ spec: 'updates-at-once.spec.ts', test });

const byBounds = (test) => ({ spec: 'session-bounds.spec.ts', test });
const byMayCreate = (test) => ({ spec: 'may-create.spec.ts', test });
const byAnonymousTimeout = (test) => ({ spec: 'anonymous-timeout.spec.ts', test });
const byGoneSessions = (test) => ({ spec: 'gone-session.spec.ts', test });
const bySecurityEvents = (test) => ({ spec: 'security-events.spec.ts', test });
const byLogger = (test) => ({ spec: 'one-line.logger.spec.ts', test });

const bySigningIn = (test) => ({ spec: 'signing-in.spec.ts', test });

/** Mistakes in signing in and out. */
const signing = [
  {
    mistake: 'Assigning a principal keeps the token that was planted',
    in: 'TrackedSession',
    code: 'if (rotates && this.#state.token === undefined) this.#saver.rotate();',
    instead: '',
    killedBy: bySigningIn('changes the id with the principal, so that a planted token opens nothing'),
  },
  {
    mistake: 'A principal that is assigned takes over the sign-in of another one',
    in: 'TrackedSession',
    code: 'if (rotates && !this.#state.authentication.kept) this.#state.signOut();',
    instead: '',
    killedBy: bySigningIn('takes over no sign-in of another principal'),
  },
  {
    mistake: 'A session that is signed out leaves the other cookie signed in',
    in: 'TrackedSession.signOut',
    code: 'this.#saver.beforeEnd = this.#companions;',
    instead: '',
    killedBy: bySigningIn('ends every session that the request presented, and expires the cookie'),
  },
  {
    mistake: 'The next user of a browser is remembered because the one before was',
    in: 'SessionState.signIn',
    code: 'rememberedFor ?? timeouts.maxInactiveInterval',
    instead: 'rememberedFor ?? this.timeouts.all.maxInactiveInterval',
    killedBy: bySigningIn('decides anew whether the user is remembered'),
  },
  {
    mistake: 'A cookie that is remembered outlives the sign-in of the next user',
    in: 'SessionState.signIn',
    code: '[...visitorAttributes, ...LIFETIME_ATTRIBUTES]',
    instead: '[...visitorAttributes]',
    killedBy: bySigningIn('decides anew whether the user is remembered'),
  },
  {
    mistake: 'A planted session of a visitor hides that of a user',
    in: 'indexOfSessionThatCounts',
    code: 'ofPrincipal < 0 ?',
    instead: 'true ?',
    killedBy: bySigningIn('one of a principal counts before one of a visitor'),
  },
  {
    mistake: 'In strict mode, the sessions of two users are served',
    in: 'RequestSessionLoader',
    code: "this.options.security === 'strict' ?",
    instead: 'false ?',
    killedBy: bySigningIn('two principals are refused with 409 in strict mode, where the session is used'),
  },
];

/** Mistakes in the protection against requests of other pages. */
const csrf = [
  {
    mistake: 'A CSRF token stays valid when the id of its session changes',
    in: 'tokenFor',
    code: '!value.startsWith(`${id}:`)',
    instead: 'false',
    killedBy: byCsrfTokens('is drawn anew when the id changes, at once and for later requests'),
  },
  {
    mistake: 'Each of several pages that load at once draws a CSRF token of its own',
    in: 'csrfTokenOf',
    code: 'tokenFor(id, current) ? current : drawn',
    instead: 'drawn',
    killedBy: byCsrfTokens('gives valid tokens to all pages that load at once'),
  },
  {
    mistake: 'A CSRF token of another session counts',
    in: 'isCsrfTokenOf',
    code: '&& timingSafeEqual(given, expected)',
    instead: '',
    killedBy: byCsrfTokens('is not valid for another session'),
  },
  {
    mistake: 'A page shows the CSRF token as it is stored, so that its size when compressed tells it',
    in: 'mask',
    code: 'randomBytes(token.length)',
    instead: 'Buffer.alloc(token.length)',
    killedBy: byCsrfTokens('is not what the store has, and no part of it'),
  },
  {
    mistake: 'A CSRF token makes up for the origin of another page',
    in: 'CsrfGuard.canActivate',
    code: 'this.#refuseOtherOrigins(request);',
    instead: '',
    killedBy: byCsrfGuard('the origin of another site, with a valid token'),
  },
  {
    mistake: 'The own origin makes up for a missing CSRF token',
    in: 'CsrfGuard.canActivate',
    code: 'this.#refuseOtherTokens(request);',
    instead: '',
    killedBy: byCsrfGuard('the origin does not replace the token'),
  },
  {
    mistake: 'A POST that middleware has made a GET changes something without a CSRF token',
    in: 'isSafe',
    code: '&& SAFE_METHODS.includes(originalMethod)',
    instead: '',
    killedBy: byCsrfGuard('CsrfGuard refuses a POST that middleware has made a GET, and a GET that it has made a POST'),
  },
  {
    mistake: 'A host that begins like a trusted one is trusted',
    in: 'isFromOtherOrigin',
    code: 'trustedOrigins.has(origin)',
    instead: '[...trustedOrigins].some((each) => origin.startsWith(each))',
    killedBy: byCsrfGuard('the origin of a host that begins like a trusted one, with a valid token'),
  },
  {
    mistake: 'An origin without a name counts as the own',
    in: 'isOriginOf',
    code: "if (!page || !['http:', 'https:'].includes(page.protocol)) return false;",
    instead: 'if (!page) return true;',
    killedBy: byCsrfGuard('the origin of no origin that has a name, with a valid token'),
  },
];

/** Mistakes in updates of one attribute by many requests. */
const updates = [
  {
    mistake: 'Updates of an attribute do not wait for each other',
    in: 'AttributeUpdates',
    code: '`${update.id}:${update.name}`',
    instead: '`${update.id}:${update.name}:${update.begin}`',
    killedBy: byUpdates('by many requests are made together while one is written, and none is lost'),
  },
  {
    mistake: 'Updates of different attributes wait for each other',
    in: 'AttributeUpdates',
    code: '`${update.id}:${update.name}`',
    instead: 'update.id',
    killedBy: byUpdates('wait only for those of the same attribute and session'),
  },
  {
    mistake: 'An update of an old id starts from what was stored since the rotation',
    in: 'AttributeUpdates',
    code: '`${update.id}:${update.name}`',
    instead: 'update.name',
    killedBy: byUpdates('by the old id of a session do not start from what was stored since it was rotated'),
  },
  {
    mistake: 'An update that has waited starts from what its request had loaded',
    in: 'AttributeUpdates',
    code: 'stored ? stored.text : loaded',
    instead: 'loaded',
    killedBy: byUpdates('by many requests are made together while one is written, and none is lost'),
  },
  {
    mistake: 'Any number of updates is computed at once',
    in: 'AttributeUpdates',
    code: 'waiting.length < LARGEST_BATCH',
    instead: 'waiting.length >= 0',
    killedBy: byUpdates('by many requests are made together while one is written, and none is lost'),
  },
  {
    mistake: 'Updates that are made together all start from the same value',
    in: 'applied',
    code: 'apply(last ? (last.text ?? undefined) : known)',
    instead: 'apply(known)',
    killedBy: byUpdates('by many requests are made together while one is written, and none is lost'),
  },
  {
    mistake: 'An update fails because of a value that is not stored',
    in: 'applied',
    code: 'return () => reject(error);',
    instead: 'reject(error); return () => undefined;',
    killedBy: byUpdates('throw only because of what is stored'),
  },
  {
    mistake: 'An update keeps a session idle that others use',
    in: 'AttributeUpdates',
    code: 'waiting.every(',
    instead: 'waiting.some(',
    killedBy: byUpdates('renew the idle timeout unless all that are made together keep the session idle'),
  },
  {
    mistake: 'An update that was in conflict is repeated at once',
    in: 'AttributeUpdates',
    code: 'if (conflicts > 0) await delay(Math.random() * Math.min(LONGEST_PAUSE, 2 ** conflicts));',
    instead: '',
    killedBy: byUpdates('are repeated after pauses, and given up after the timeout with a 409'),
  },
  {
    mistake: 'An update waits for a client that has left',
    in: 'AttributeUpdates',
    code: 'if (before || conflicts > 0) waiting = waiting.filter((update) => this.#isWaiting(update));',
    instead: '',
    killedBy: byUpdatesAtOnce('stop when their clients have disconnected, on express'),
  },
  {
    mistake: 'A client that disconnects ends a process that does not await an update',
    in: 'forDisconnected',
    code: 'if (error instanceof ClientDisconnectedError) same.catch(() => undefined);',
    instead: '',
    killedBy: byUpdates('do not wait, and need no handler for their error'),
  },
  {
    mistake: 'An update that is made after the response is dropped',
    in: 'ResponseCommit.isAborted',
    code: '&& !this.response.writableEnded',
    instead: '',
    killedBy: byUpdatesAtOnce('are kept when their clients have disconnected, on fastify'),
  },
  {
    mistake: 'A turn that hangs blocks all that wait for it',
    in: 'TurnQueue',
    code: 'this.longestTurn',
    instead: '2 ** 31 - 1',
    killedBy: byTurns('starts the next step after the longest turn, although the one before has not finished'),
  },
  {
    mistake: 'The queue of turns keeps every key that it has seen',
    in: 'TurnQueue.run',
    code: 'if (this.#last.get(key) === turn) this.#last.delete(key);',
    instead: '',
    killedBy: byTurns('keeps nothing of a key whose steps are finished'),
  },
];

/** Mistakes in the bounds of sessions, and in who may start one. */
const bounds = [
  {
    mistake: 'A session has one attribute more than the bound allows',
    in: 'assertSessionFits',
    code: 'attributes > Math.max(maxAttributes, stored.attributes)',
    instead: 'attributes > Math.max(maxAttributes, stored.attributes) + 1',
    killedBy: byBounds('a session with bounds refuses where it is set what exceeds maxAttributes'),
  },
  {
    mistake: 'A session that is larger than a new bound can be changed no more',
    in: 'assertSessionFits',
    code: 'bytes > Math.max(maxSessionSize, stored.bytes)',
    instead: 'bytes > maxSessionSize',
    killedBy: byBounds('reads and changes what was stored before, as long as it does not grow'),
  },
  {
    mistake: 'What the library keeps in a full session locks its user out',
    in: 'SessionContent',
    code: 'if (isOwnAttribute(name)) return this;',
    instead: '',
    killedBy: byBounds('lets somebody sign in while an object of a full session changes in place'),
  },
  {
    mistake: 'A sign-in is refused for what else the session holds',
    in: 'assertSessionFits',
    code: 'if (isOwnAttribute(name)) return;',
    instead: '',
    killedBy: byBounds('lets somebody sign in whose session exceeds a bound by what is kept'),
  },
  {
    mistake: 'A save that the store has found too large ends the session of the request',
    in: 'SessionSaver',
    code: "if (reply.outcome === 'full' && save.kind === 'update') throw this.#full(reply.bound, save.attributes);",
    instead: '',
    killedBy: byBounds('rejects a save and an update that the store answers with a bound, and keeps all changes'),
  },
  {
    mistake: 'What objects have become in place exceeds the bound of the session',
    in: 'TrackedAttributes.changes',
    code: 'if (inPlace !== undefined) this.#assertFits(changes, inPlace);',
    instead: '',
    killedBy: byBounds('refuses at the save what objects have become that were changed in place, each time'),
  },
  {
    mistake: 'A name of a principal that is too long signs somebody in by half',
    in: 'SessionState.signIn',
    code: 'this.attributes.encode(PRINCIPAL_NAME_INDEX_NAME, name);',
    instead: '',
    killedBy: byBounds('changes nothing in a sign-in with a name that is too long'),
  },
  {
    mistake: 'The application is asked again whether a session may be stored',
    in: 'SessionSaver',
    code: 'await (this.#permission ??= mayCreate());',
    instead: 'await mayCreate();',
    killedBy: byMayCreate(
      'is asked once by a request that saves again after the refusal, and once where the id was taken',
    ),
  },
  {
    mistake: 'A request that stores nothing is asked about as well',
    in: 'SessionSaver',
    code: "if (this.state.nextSave()?.kind === 'create') await",
    instead: 'await',
    killedBy: byMayCreate('is asked once for each new session, and for nothing else'),
  },
  {
    mistake: 'A principal that is assigned keeps the timeout of visitors',
    in: 'SessionState.setPrincipal',
    code: 'if (!hadOne && name !== undefined)',
    instead: 'if (false)',
    killedBy: byAnonymousTimeout(
      'gets the timeout of users with a principal that is assigned, and the other one without',
    ),
  },
  {
    mistake: 'A rename of a user changes a timeout that the application has set',
    in: 'SessionState.setPrincipal',
    code: 'if (!hadOne && name !== undefined)',
    instead: 'if (name !== undefined)',
    killedBy: byAnonymousTimeout('keeps a timeout of its own when one principal replaces another one'),
  },
  {
    mistake: 'What a handler changes in place after it has returned is lost',
    in: 'TrackedAttributes.rest',
    code: 'process.nextTick(() => (this.#isAtRest = false));',
    instead: '',
    killedBy: {
      spec: 'in-place-changes.spec.ts',
      test: 'is saved when the handler changes it after it has returned: later',
    },
  },
  {
    mistake: 'An object that is read again after the handler is not compared',
    in: 'TrackedAttributes',
    code: '#read(name: string): Entry { this.#isAtRest = false;',
    instead: '#read(name: string): Entry {',
    killedBy: {
      spec: 'in-place-changes.spec.ts',
      test: 'is saved when the handler changes it after it has returned: unawaited',
    },
  },
  {
    mistake: 'A value that others have stored gives its copy another prototype',
    in: 'parseJson',
    code: '(key === PROTO ? undefined : value)',
    instead: 'value',
    killedBy: {
      spec: 'json-attribute.serializer.spec.ts',
      test: 'leaves out keys that would set a prototype from what others have stored: [{"a":{"__proto__" : {"isAdmin":true}}}]',
    },
  },
];

/** Mistakes when the session of a client is over, in what is told of attacks, and in what the log says. */
const told = [
  {
    mistake: 'A session that could not be started looks like a success',
    in: 'SessionSaver',
    code: 'throw new SessionGoneError(NOT_CREATED);',
    instead: 'return outcome;',
    killedBy: byGoneSessions(
      'a token that was just replaced makes POST /login a 409 without a cookie, never a silent 201',
    ),
  },
  {
    mistake: 'A sign-in into a session that has ended looks like a success',
    in: 'SessionSaver',
    code: "save.kind === 'update' && save.signIn",
    instead: 'false',
    killedBy: byGoneSessions('a sign-in into a session that has ended meanwhile is a 409, and nobody is signed in'),
  },
  {
    mistake: 'A sign-in looks like a success when a save before has found that the session has ended',
    in: 'SessionState.signIn',
    code: "if (this.ended === 'gone') throw new SessionGoneError(NOT_SIGNED_IN);",
    instead: '',
    killedBy: byGoneSessions(
      'a update-and-sign-in into a session that has ended meanwhile is a 409, and nobody is signed in',
    ),
  },
  {
    mistake: 'Where no interceptor runs, an HTTP exception of a save is a 500',
    in: 'ResponseCommit.replace',
    code: 'error instanceof HttpException',
    instead: 'error instanceof SessionStoreError',
    killedBy: byGoneSessions(
      'a token that was just replaced makes POST /login-in-guard a 409 without a cookie, never a silent 201',
    ),
  },
  {
    mistake: 'One of many clients is blamed for the security events of all',
    in: 'SecurityEventLimiter.add',
    code: 'isOne ? facts : anonymous(facts)',
    instead: 'facts',
    killedBy: bySecurityEvents(
      'of many clients is told apart for a hundred of them, counts all, and blames nobody for the others',
    ),
  },
  {
    mistake: 'Security events that wait are lost at the shutdown',
    in: 'SecurityEvents.listen',
    code: 'this.#limiter.flush();',
    instead: '',
    killedBy: bySecurityEvents('is called at the shutdown with what was not delivered yet'),
  },
  {
    mistake: 'A security event has the query of its request',
    in: 'pathOf',
    code: 'url.split(/[?#]/, 1)',
    instead: 'url.split(/#/, 1)',
    killedBy: bySecurityEvents('with the URL "/reset/a?token=hush" has the path "/reset/a"'),
  },
  {
    mistake: 'A request is read for a security event that nobody wants',
    in: 'SecurityEvents.report',
    code: '!this.#listener?.listensTo(kind)',
    instead: 'false',
    killedBy: bySecurityEvents('nothing is read of a request'),
  },
  {
    mistake: 'A warning has the control characters of a client',
    in: 'OneLineLogger.warn',
    code: 'escaped(message)',
    instead: 'message',
    killedBy: byLogger('warn() writes one line, and nothing that commands a terminal'),
  },
  {
    mistake: 'The message of an error adds frames to its stack',
    in: 'shownStack',
    code: 'begin + message.length',
    instead: 'begin',
    killedBy: byLogger('has the frames of its stack, and none that its message pretends to be'),
  },
];

export const requests = [
  ...told,
  ...signing,
  ...csrf,
  ...updates,
  ...bounds,
  {
    mistake: 'An id that nobody has is adopted from the client that presents it',
    in: 'SessionState.create',
    code: 'const { id, token } = writer.drawKey();',
    instead: `const { id: drawn, token } = writer.drawKey();
    const [id = drawn] = presentedIds;`,
    killedBy: byContract('creation accepts a client that presents an unknown id, or that of an ended session'),
  },
  {
    mistake: 'The id after one whose creation was not answered is drawn without regard to that',
    in: 'SessionSaver.rotate',
    code: 'drawKey(state.storedId ?? this.#unanswered?.id)',
    instead: 'drawKey(state.storedId)',
    killedBy: {
      spec: 'tracked-session.spec.ts',
      test: 'draws an id that may replace the stored one, also after a save without a reply',
    },
  },
  {
    mistake: 'All attributes that were read are written back',
    in: 'TrackedAttributes',
    code: 'if (!entry.assigned) return this.#changeInPlace(entry);',
    instead: 'if (!entry.assigned) return this.#stored.encode(entry.name, entry.value);',
    killedBy: byContract('saving writes only the changes, so that two concurrent requests lose none of them'),
  },
  {
    mistake: 'A value that was read is compared with the text that was stored',
    in: 'TrackedAttributes',
    code: 'entry.text = this.#stored.textAsRead(text);',
    instead: 'entry.text = text;',
    killedBy: {
      spec: 'tracked-session-writes.spec.ts',
      test: 'writes no text that another language formatted differently, until its value is changed',
    },
  },
  {
    mistake: 'An object that was changed after it was set is saved as it was set',
    in: 'TrackedAttributes',
    code: 'isObject(value) && !this.#stored.hasText(value, text!)',
    instead: 'false',
    killedBy: {
      spec: 'tracked-session-writes.spec.ts',
      test: 'writes an object that was changed in place after it was read or set',
    },
  },
  {
    mistake: 'What a handler changes in place after the headers were sent is lost without a warning',
    in: 'ResponseCommit',
    code: 'this.#isHandled ?',
    instead: 'true ?',
    killedBy: byRequests(
      'logs that an object was changed in place after the headers were sent, by the handler that sent them',
    ),
  },
  {
    mistake: 'A member of a value that is undefined makes the value one that cannot be stored',
    in: 'problemOfMember',
    code: 'if (member === undefined) continue;',
    instead: '',
    killedBy: byValues('a value in Redis comes back without its undefined members'),
  },
  {
    mistake: 'The value of an instance of a class is stored without its class',
    in: 'isPlain',
    code: 'Object.getPrototypeOf(prototype) === null',
    instead: 'true',
    killedBy: {
      spec: 'json-attribute.serializer.spec.ts',
      test: 'refuses an instance of a class with an error that names the place and the serializer option, but not the value',
    },
  },
  {
    mistake: 'The head of an answer leaves before the save is done',
    in: 'ResponseCommit',
    code: 'if (this.needsSave) return this.save();',
    instead: 'if (this.needsSave) void this.save().catch(() => undefined);',
    killedBy: byRequests('is finished before the headers are sent: res'),
  },
  {
    mistake: 'The cookie is sent of a session that is not stored',
    in: 'SessionState',
    code: 'this.ended === undefined && this.storedId === this.id',
    instead: 'this.ended === undefined',
    killedBy: byRequests('the cookie is left unchanged when its session is unknown, until a new session replaces it'),
  },
  {
    mistake: 'An answer is as if a save that failed had been done',
    in: 'ResponseCommit',
    code: 'if (error instanceof SessionStoreError) failures.failed(error); throw error;',
    instead: 'if (error instanceof SessionStoreError) failures.failed(error);',
    killedBy: byRequests('the save responds with 503 and without a cookie when it fails: value'),
  },
  {
    mistake: 'A request whose session has gone expires the cookie',
    in: 'TrackedSession',
    code: "return this.#state.ended === 'deleted';",
    instead: 'return this.#state.ended !== undefined;',
    killedBy: byRequests('the cookie is not changed by a slow request in flight during logout'),
  },
  {
    mistake: 'A request that was held open across a login sends the cookie of before again',
    in: 'ResponseCommit',
    code: "=== 'touched'",
    instead: "!== 'gone'",
    killedBy: {
      spec: 'rolling-cookie.spec.ts',
      test: 'is not sent again by a request that reads and was held open across a login',
    },
  },
  {
    mistake: 'A response whose headers are being sent waits for a session that is first used then',
    in: 'ResponseHold',
    code: "this.#state = 'through'; try",
    instead: 'try',
    killedBy: byBinding('without a token changes its session too late, while Node.js sends the headers'),
  },
  {
    mistake: 'Of two applications, one inside the other, only one holds the response',
    in: 'SharedResponseFunctions',
    code: "Symbol('response calls')",
    instead: "Symbol.for('response calls')",
    killedBy: byBinding('has the sessions of two applications, one inside the other'),
  },
  {
    mistake: 'A request that is routed again gets another session',
    in: 'SessionMiddleware.#serve',
    code: '|| SessionExchange.of(request)?.parts === store.parts',
    instead: '',
    killedBy: byBinding('keeps its session when the application routes it again'),
  },
  {
    mistake: 'Middleware runs before the session is there, on Fastify',
    in: 'putBeforeFirst',
    code: 'use.call(fastify, middleware);',
    instead: '',
    killedBy: byBinding('on fastify has its session in middleware of a module'),
  },
  {
    mistake: 'The session is saved before interceptors of the controller change it',
    in: 'putFirstAmong',
    code: '[enhancer, ...others]',
    instead: '[...others, enhancer]',
    killedBy: byEnhancers(
      'saves once what the interceptors of a controller change after the handler: /intercepted/class',
    ),
  },
  {
    mistake: 'The session is saved before global interceptors change it',
    in: 'SessionEnhancers',
    code: 'others.length > 0 ||',
    instead: '',
    killedBy: byEnhancers('saves once what a global interceptor changes after the handler: APP_INTERCEPTOR'),
  },
  {
    mistake: 'A due touch waits for the route, although no handler keeps sessions idle',
    in: 'SessionMiddleware',
    code: '!this.routes.has(KEEP_SESSION_IDLE)',
    instead: 'false',
    killedBy: byEnhancers('is not waited for by a due touch where no handler keeps sessions idle'),
  },
  {
    mistake: 'A touch leaves before it is known that the handler keeps the session idle',
    in: 'SessionMiddleware',
    code: '!this.routes.has(KEEP_SESSION_IDLE)',
    instead: 'true',
    killedBy: {
      spec: 'session-route.guard.spec.ts',
      test: 'keeping the session idle, also when the request is denied',
    },
  },
  {
    mistake: "Beside `timeout: 'never'`, a session with a short timeout of its own ends while it is in use",
    in: 'touchIntervalOf',
    code: '(timeout < 0 || maxInactiveInterval < timeout)',
    instead: 'maxInactiveInterval < timeout',
    killedBy: {
      spec: 'session-touch.spec.ts',
      test: 'a session in use lives as long as it may, with -1, 60, -1, false',
    },
  },
  {
    mistake: 'A save over a connection is tried again while the one before it fails',
    in: 'DetachedSession.save',
    code: 'if (this.#saving === saving) this.#saving = undefined;',
    instead: 'this.#saving = undefined;',
    killedBy: {
      spec: 'detached-session.spec.ts',
      test: 'shares the failure of a save with those that wait for it, also when one before it is done',
    },
  },
  {
    mistake: 'What a client does after the first second of a flood is never told',
    in: 'SecurityEventLimiter.flush',
    code: 'this.#timer = undefined;',
    instead: '',
    killedBy: {
      spec: 'security-event.limiter.spec.ts',
      test: 'delivers the first event of a client at once and the others once a window, also when the client comes back',
    },
  },
  {
    mistake: 'A handler of security events that has failed sixteen times hears nothing any more',
    in: 'SecurityEventHandler',
    code: 'clearTimeout(hangs); this.#running--; }',
    instead: 'clearTimeout(hangs); if (!this.#logged.has(FAILS)) this.#running--; }',
    killedBy: bySecurityEvents('that fails each time hears of every event, at once or one after the other'),
  },
  {
    mistake: 'A line of the log shows a token, where session ids are plain',
    in: 'SessionEventDispatcher',
    code: 'this.options?.ids.shown(sessionId) ?? sessionId',
    instead: 'sessionId',
    killedBy: {
      spec: 'session-event.dispatcher.spec.ts',
      test: 'shows no session id that is a token: neither in a line of the log nor in an error',
    },
  },
];
