// Mistakes in what a request and a response do with cookies, and with the caches between client and application.
const bySeveralCookies = (test) => ({ spec: 'several-cookies.spec.ts', test });
const byArbitraryCookies = (test) => ({ spec: 'arbitrary-cookies.spec.ts', test });
const byStrictMode = (test) => ({ spec: 'strict-security.spec.ts', test: `with \`security: 'strict'\` ${test}` });
const byRequirement = (test) => ({
  spec: 'asvs.spec.ts',
  test: `an application in strict mode, on express, ${test}`,
});
const byResolver = (test) => ({ spec: 'cookie-session-id.resolver.spec.ts', test });
const bySharedCaches = (test) => ({ spec: 'shared-caches.spec.ts', test });

/** Of several cookies of one name. */
const planted = [
  {
    mistake: 'Five planted cookies hide the one of the user',
    in: 'bounded',
    code: 'ids.slice(0, LOADED_UNSEEN + more)',
    instead: 'ids.slice(0, LOADED_UNSEEN)',
    killedBy: bySeveralCookies(
      'on express, lock nobody out who is signed in, however 6 were planted before the own one',
    ),
  },
  {
    mistake: 'Five planted sessions of visitors hide that of the user',
    in: 'loadCounting',
    code: 'indexOfSessionThatCounts(sessions)',
    instead: 'sessions.findIndex((each) => each !== null)',
    killedBy: bySeveralCookies(
      'on express, lock nobody out who is signed in, however 6 were planted before the own one',
    ),
  },
  {
    mistake: 'A header of cookies costs a load of each live session',
    in: 'findPresented',
    code: 'flat.length <= LOADED_UNSEEN',
    instead: 'true',
    killedBy: {
      spec: 'many-cookies.spec.ts',
      test: 'a request with 64 live sessions reads one of them from Redis, 1 partition(s)',
    },
  },
  {
    mistake: 'A session of which only the principal is known counts',
    in: 'loadCounting',
    code: 'sessions[counts] = loaded;',
    instead: '',
    killedBy: bySeveralCookies('on express, open the session of the live token: the 64th'),
  },
  {
    mistake: 'An open request keeps all sessions in memory that its cookies open',
    in: 'RequestSessionLoader.#endsOf',
    code: '(other) => this.#endOf(other)',
    instead: '({ id, foreign }) => async () => { await foreign?.move(id); await this.repository.deleteById(id); }',
    killedBy: {
      spec: 'open-requests.spec.ts',
      test: 'an open request keeps one session in memory, however many it presents, and still ends all of them',
    },
  },
  {
    mistake: 'Each made-up cookie costs a load',
    in: 'RedisSessionRepository.load',
    code: 'if (ids.length <= LOADED_UNSEEN) return this.#loadAll(ids, only);',
    instead: 'if (ids.length > 0) return this.#loadAll(ids, only);',
    killedBy: {
      spec: 'made-up-cookies.spec.ts',
      test: 'made-up cookies on express, 1 partition(s) cost one command, and only what counts is loaded',
    },
  },
  {
    mistake: 'Values that are refused do not count towards the 64',
    in: 'CookieSessionIdResolver.resolve',
    code: 'values.slice(0, MOST_VALUES)',
    instead: 'cookieValues(request.headers.cookie, this.name, 9999)',
    killedBy: byArbitraryCookies('costs a bounded number of HMACs when it is full of a signature of the right length'),
  },
  {
    mistake: 'A signature of any length costs an HMAC for each key',
    in: 'CookieCodec.#isSigned',
    code: 'if (presented.length !== SIGNATURE_LENGTH) return false;',
    instead: '',
    killedBy: byArbitraryCookies('costs a bounded number of HMACs when it is full of a signature that is too short'),
  },
  {
    mistake: 'A cookie whose name ends in that of the session cookie opens its session',
    in: 'cookie-values: beginsPair',
    code: "before < 0 || header[before] === ';'",
    instead: 'true',
    killedBy: byArbitraryCookies('opens nothing but the tokens of the first 64 values of the name'),
  },
  {
    mistake: 'Cookies that were planted for the first resolver hide what the last one finds',
    in: 'CompositeSessionIdResolver.resolve',
    code: 'KEPT_FREE * (this.#resolvers.length - 1 - position)',
    instead: '0',
    killedBy: byArbitraryCookies('with several cookies and a header, and those of the last place as well'),
  },
];

/** Of the cookie that is sent. */
const sent = [
  {
    mistake: 'The cookie is named __Host-SESSION although attributes of a request may contradict it',
    in: 'defaultName',
    code: 'isOfHost && !attributes',
    instead: 'isOfHost',
    killedBy: byResolver('the name with {"secure":true} is SESSION, and no other one is read'),
  },
  {
    mistake: 'Wrong attributes of a request fall back to configured ones, which can be looser',
    in: 'CookieSessionIdResolver.#attributesFor',
    code: 'this.#diagnosis.ofAttributes(error); return undefined;',
    instead: 'this.#diagnosis.ofAttributes(error); return this.#cookie;',
    killedBy: byResolver('set no cookie when they are an exception, and one log line says so'),
  },
  {
    mistake: 'A cookie goes to all hosts of a domain whose name only ends in a listed one',
    in: 'isWithin',
    code: '`.${domain.toLowerCase()}`',
    instead: 'domain.toLowerCase()',
    killedBy: byResolver('on the host "notexample.com", the cookie has the domain undefined'),
  },
  {
    mistake: 'Of two listed domains that contain a host, the one with more hosts gets the cookie',
    in: 'readDomains',
    code: 'other.length - one.length',
    instead: 'one.length - other.length',
    killedBy: byResolver('on the host "eu.shop.example.com", the cookie has the domain "shop.example.com"'),
  },
];

/** Of strict mode. */
const strict = [
  {
    mistake: 'In strict mode, a session without an absolute timeout lives as long as it is used',
    in: 'readTimeouts',
    code: 'defaults.absoluteTimeout',
    instead: "'30d'",
    killedBy: byRequirement('ends a session 12 hours after the sign-in, although it is used all the time'),
  },
  {
    mistake: 'In strict mode, only the timeout of users must not be never',
    in: 'strictTimeoutProblems',
    code: 'if (timeout === Infinity)',
    instead: "if (timeout === Infinity && name === 'timeout')",
    killedBy: byStrictMode('the start fails with one problem for sessions for ever'),
  },
  {
    mistake: 'In strict mode, any prefix is enough for the cookie of one host',
    in: 'strictProblems',
    code: "prefix?.startsWith('host') || (isShared && prefix !== undefined)",
    instead: 'prefix !== undefined',
    killedBy: byStrictMode('the start fails with one problem for the name of a shared cookie for one host'),
  },
  {
    mistake: 'In strict mode, the attributes of a request may open the cookie to scripts',
    in: 'strictProblems',
    code: 'if (!cookie.httpOnly)',
    instead: 'if (!cookie.httpOnly && cookie.attributes === undefined)',
    killedBy: byStrictMode('no cookie is set where `cookie.attributes` returns one for scripts'),
  },
  {
    mistake: 'In strict mode, a cookie behind the first resolver need not be strict',
    in: 'CompositeSessionIdResolver.meets',
    code: 'this.#resolvers.every((each) => each.meets(security))',
    instead: 'this.#resolvers[0].meets(security)',
    killedBy: byStrictMode('the start fails with one problem for a resolver behind another one'),
  },
  {
    mistake: 'In strict mode, the class of a resolver is not asked',
    in: 'createResolver',
    code: "security === 'strict' ? [...strictResolverProblems(resolver)] : []",
    instead: '[]',
    killedBy: byStrictMode('the start fails for the class of a resolver whose cookie is not strict'),
  },
  {
    mistake: 'In strict mode, a UUID counts as 128 random bits',
    in: 'mostBitsOf',
    code: 'if (UUID.test(one)) return 122;',
    instead: '',
    killedBy: byStrictMode('the start fails with one problem for UUIDs'),
  },
];

/** Of caches. */
const caches = [
  {
    mistake: 'A page of one user is kept by caches that others share',
    in: 'ResponseCommit.complete',
    code: 'else if (this.session.isUsed) forbidSharing(this.response);',
    instead: '',
    killedBy: bySharedCaches('on express, keeps no response that used the session: "public" becomes "private"'),
  },
  {
    mistake: 'A page for everybody is kept by no shared cache',
    in: 'ResponseCommit.complete',
    code: 'else if (this.session.isUsed) forbidSharing(this.response);',
    instead: 'else forbidSharing(this.response);',
    killedBy: bySharedCaches(
      'on express, may keep a response that did not use the session: "public, max-age=600" stays',
    ),
  },
  {
    mistake: 'A CDN keeps the cookie of a session',
    in: 'forbidStoring',
    code: 'if (BEFORE_CACHE_CONTROL.test(name))',
    instead: 'if (false)',
    killedBy: bySharedCaches(
      'on express, keeps none that sends the token in a cookie, also where the application speaks to your own CDN',
    ),
  },
  {
    mistake: 'A comma in quotes separates two directives',
    in: 'listed',
    code: 'String(line).match(/(?:[^,"]|"[^"]*"?)+/g) ?? []',
    instead: "String(line).split(',')",
    killedBy: bySharedCaches('"private=\\"Set-Cookie, X-A\\", max-age=60" becomes "private, max-age=60"'),
  },
];

export const cookies = [...planted, ...sent, ...strict, ...caches];
