// Mistakes in what a request does with its session, whatever store there is.
const byContract = (test) => ({ spec: 'map-session.repository.spec.ts', test });
const byRequests = (test) => ({ spec: 'session-http.spec.ts', test });
const byBinding = (test) => ({ spec: 'request-binding.spec.ts', test });
const byValues = (test) => ({ spec: 'attribute-values.spec.ts', test });
const byEnhancers = (test) => ({ spec: 'session-enhancers.spec.ts', test });
const byCsrfGuard = (test) => ({ spec: 'csrf.guard.spec.ts', test });
const byCsrfTokens = (test) => ({ spec: 'csrf-token.spec.ts', test });

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
    code: 'if (rotates && !this.#state.isSigningIn) this.#state.signOut();',
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
    in: 'countingSession',
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

export const requests = [
  ...signing,
  ...csrf,
  {
    mistake: 'An id that nobody has is adopted from the client that presents it',
    in: 'TrackedSession',
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
    code: 'entry.text = this.#textAsRead(text);',
    instead: 'entry.text = text;',
    killedBy: {
      spec: 'tracked-session.spec.ts',
      test: 'writes no text that another language formatted differently, until its value is changed',
    },
  },
  {
    mistake: 'An object that was changed after it was set is saved as it was set',
    in: 'TrackedAttributes',
    code: 'isObject(value) && !this.#stored.hasText(value, text!)',
    instead: 'false',
    killedBy: {
      spec: 'tracked-session.spec.ts',
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
    in: 'TrackedSession',
    code: 'ended === undefined && storedId === id ?',
    instead: 'ended === undefined ?',
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
];
