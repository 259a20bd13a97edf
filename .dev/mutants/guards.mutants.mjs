// Mistakes in who may reach a handler, and in the indexes that follow from attributes.
const byGuard = (test) => ({ spec: 'authenticated.guard.spec.ts', test });
const byIndexes = (test) => ({ spec: 'session-indexes.spec.ts', test });
const byContract = (test) => ({ spec: 'map-session.repository.spec.ts', test: `indexed attributes ${test}` });
const byRedisContract = (test) => ({ spec: 'redis-session.contract.spec.ts', test: `indexed attributes ${test}` });
const byResolvers = (test) => ({
  spec: 'authenticated-resolvers.spec.ts',
  test: `a field, for which Nest calls no guards, ${test}`,
});
const byMessages = (test) => ({ spec: 'authenticated-messages.spec.ts', test });

const guards = [
  {
    mistake: 'While the store is down, a guard takes a signed-in user for a stranger',
    in: 'AuthenticatedGuard',
    code: "session?.applyOutagePolicy('reject');",
    instead: '',
    killedBy: byGuard(
      'on express answers 503 while the store is down, and never 401 to a client that may be signed in',
    ),
  },
  {
    mistake: 'A guard that has refused a request lets it pass when it is asked again',
    in: 'AuthenticatedGuard.canActivate',
    code: 'const answer =',
    instead: 'passed.add(context); const answer =',
    killedBy: byGuard(
      'on express refuses whom it has refused before, when a guard of the application asked only to know',
    ),
  },
  {
    mistake: 'The guards of all routes, of a class and of a handler each ask the store for the time',
    in: 'AuthenticatedGuard.canActivate',
    code: 'if (passed.has(context)) return true;',
    instead: '',
    killedBy: byGuard(
      'on express the guard of all routes is for signed-in users, and @Public() and the other decorators are exceptions',
    ),
  },
  {
    mistake: 'A session that does not tell when its user signed in is recent enough',
    in: 'AuthenticatedGuard',
    code: 'if (authenticatedAt !== undefined) {',
    instead: 'if (authenticatedAt === undefined) return true; else {',
    killedBy: byGuard(
      'on express @RecentlyAuthenticated() refuses a session that does not tell when its user signed in',
    ),
  },
  {
    mistake: 'The age of a sign-in is measured by the clock of the application',
    in: 'AuthenticatedGuard',
    code: 'await this.sessions.parts.repository.now()',
    instead: 'await Promise.resolve(Date.now())',
    killedBy: byGuard(
      'on express @RecentlyAuthenticated() answers 401 with a reason when the sign-in is too old by the clock of the store',
    ),
  },
  {
    mistake: 'A cache may keep the response of a protected route for everybody',
    in: 'AuthenticatedGuard',
    code: 'session?.use();',
    instead: '',
    killedBy: byGuard(
      'on express tells caches that a response depends on the session, although the handler does not use it',
    ),
  },
  {
    mistake: 'A guard of the application runs before the one that knows who is signed in',
    in: 'putFirstAmong',
    code: '[enhancer, ...others]',
    instead: '[...others, enhancer]',
    killedBy: byGuard('runs before the guards of @UseGuards() on the same handler: /above'),
  },
  {
    mistake: 'A field of GraphQL looks protected, and nobody is told that it is open',
    in: 'GuardedFieldsCheck.onModuleInit',
    code: 'if (open.length === 0) return;',
    instead: 'return;',
    killedBy: byResolvers('keeps the application from starting if it looks protected: EmployeeResolver.salary'),
  },
  {
    mistake: 'A field of GraphQL looks protected by its class, and nobody is told that it is open',
    in: 'GuardedFieldsCheck.#looksGuarded',
    code: 'rule !== PUBLIC && isGuardedBy(AuthenticatedGuard, controller)',
    instead: 'false',
    killedBy: byResolvers('keeps the application from starting if it looks protected: ClosedResolver.salary'),
  },
  {
    mistake: '@Public() on a class switches off the guard that a handler has by name',
    in: 'AuthenticatedGuard.canActivate',
    code: 'isGuardedBy(AuthenticatedGuard, context.getHandler())',
    instead: 'false',
    killedBy: byGuard('on express the decorator of a handler replaces that of its class: /named'),
  },
  {
    mistake: 'Of two contradicting decorators on one handler, the upper one counts',
    in: 'marked',
    code: 'if (other !== undefined && other?.maxAge !== rule?.maxAge) {',
    instead: 'if (false) {',
    killedBy: byGuard(
      'several of @Public(), @Authenticated() and @RecentlyAuthenticated() are refused where the class is defined: {"upper":0,"lower":1}',
    ),
  },
  {
    mistake: 'A client of a gateway is not told why its message was refused',
    in: 'GatewayExplorer',
    code: 'putFilterLast(filter, controller);',
    instead: '',
    killedBy: byMessages(
      'messages over ws @Authenticated() lets those of signed-in users pass, and tells others why not',
    ),
  },
];

const indexes = [
  {
    mistake: 'A value that looks like the hash of another one is stored as it is',
    in: 'indexTerm',
    code: 'value.startsWith(HASHED) ||',
    instead: '',
    killedBy: byIndexes(
      'the changes of indexes have values of at most 256 bytes: longer ones are hashed, and so is what looks like a hash',
    ),
  },
  {
    mistake: 'A client fills the store with the value of an index',
    in: 'indexTerm',
    code: '|| Buffer.byteLength(value) > LONGEST',
    instead: '',
    killedBy: byIndexes(
      'the changes of indexes have values of at most 256 bytes: longer ones are hashed, and so is what looks like a hash',
    ),
  },
  {
    mistake: 'An index whose name has a colon shares its entries with another one',
    in: 'indexNameTerm',
    code: ".replaceAll(':', '%3A')",
    instead: '',
    killedBy: byRedisContract('keep different names of indexes apart'),
  },
  {
    mistake: 'An index shares its entries with one whose name looks escaped',
    in: 'indexNameTerm',
    code: ".replaceAll('%', '%25')",
    instead: '',
    killedBy: byRedisContract('keep different names of indexes apart'),
  },
  {
    mistake: 'Half of a character is stored as another value',
    in: 'termOf',
    code: "if (!isWellFormed(value)) throw new SessionIndexError(name, 'has a value that is not well-formed Unicode');",
    instead: '',
    killedBy: byIndexes('fail with an error that names the index when its function is not well-formed'),
  },
  {
    mistake: 'A function of several attributes is an index',
    in: 'probe',
    code: '&& others.length === 0',
    instead: '',
    killedBy: byIndexes(
      `the option indexes refuses {"tenant": [Function tenant]} at start: the index "tenant" must read one attribute, the same one for every session: keep in one attribute all that`,
    ),
  },
  {
    mistake: 'A session stays in the index of an attribute that a sign-in has not kept',
    in: 'SessionState',
    code: 'joined(this.#indexesToLeave(authentication), this.#indexesOf(attributes))',
    instead: 'this.#indexesOf(attributes)',
    killedBy: byContract('list no session whose attribute a sign-in has not kept, known to it or not'),
  },
  {
    mistake: 'A session without attributes stays in the indexes of the application',
    in: 'SessionIndexes',
    code: 'lost.map(({ name }) => [indexNameTerm(name), null])',
    instead: 'lost.slice(0, 1).map(({ name }) => [indexNameTerm(name), null])',
    killedBy: byContract('list no session from which all attributes were removed'),
  },
];

export const guarding = [...guards, ...indexes];
