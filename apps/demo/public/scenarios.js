/**
 * The buttons of the split screen: what each one does to both sides, the code that decides on each, and why they differ.
 */
export const SCENARIOS = {
  'two-tabs': {
    title: 'Two tabs add at once',
    about: 'There is an apple in the cart. Two tabs of one browser add a lantern and a teapot at the same time.',
    left: ['session.items = [...(session.items ?? []), name];'],
    right: ["return session.updateAttribute('items', (items = []) => [...items, name]);"],
    why: 'express-session stores the whole session when a request ends, so the last one wins. nest-session finds that the cart has changed meanwhile, and adds to what is there.',
  },
  redirect: {
    title: 'Redirect after a login, slow Redis',
    about: 'The login redirects to the account. Redis holds back all writes for 0.7 s meanwhile.',
    left: [
      "@Redirect('/compared/account', 303)",
      'login(@Req() { session }: Request): void {',
      '  session.name = ACCOUNT;',
    ],
    right: [
      "@Redirect('/compared/account', 303)",
      'login(@Session() session: Session): void {',
      '  session.signIn(ACCOUNT);',
    ],
    why: 'express-session sends the redirect before Redis has the session, unless the handler calls save() first. nest-session always stores, then answers.',
  },
  'sign-out': {
    title: 'Log out during a slow request',
    about: 'One tab logs out, while a request of another tab takes 1.5 s.',
    left: ['await called((done) => session.destroy(done));'],
    right: ['session.signOut();'],
    why: 'express-session stores what the slow request had loaded, and so brings the session back. nest-session saves nothing into a session that has ended.',
  },
  'stolen-cookie': {
    title: 'A copied cookie',
    about:
      'dora has signed in a minute ago. Malware copies her session cookie, and a thief puts it into another browser.',
    left: ['session({ store, secret: SECRET, resave: false, saveUninitialized: false });'],
    right: ['SessionModule.forRoot({', "  deviceBound: { mode: 'enforce' },"],
    why: 'express-session serves whoever has the cookie. nest-session has bound the session to her browser, which keeps a key that cannot be copied and proves every few minutes that it has it. Whoever copies all of her cookies gets in for ten minutes at most. Browsers that cannot bind are served as on the left.',
  },
  killed: {
    title: 'kill -9 before the mail',
    about:
      'A session runs out after 3 s, with a lantern in its cart. The instance that is about to write a mail about it is killed. Wait 20 s for the rest.',
    left: [
      'await this.#subscriber.psubscribe(`${NOTIFICATIONS}*`);',
      "const isOurs = await this.redis.set(keyOf('claimed', id), environment.instance, 'EX', SECONDS_KEPT, 'NX');",
    ],
    right: ['@OnSessionEvent(SessionExpiredEvent)', 'async remind(event: SessionExpiredEvent): Promise<void> {'],
    why: 'express-session reports no end. The left shop listens to Redis itself, which tells each instance once. One of them claims the mail, so that there are not two, and the claim dies with it. nest-session hands the event to another instance.',
  },
  frozen: {
    title: 'Redis frozen',
    about: 'Redis replies to nobody for 5 s. A visitor with a cart opens the page meanwhile.',
    left: ['new RedisStore({ client: connection, prefix: PREFIX, ttl: SECONDS_UNUSED });'],
    right: ['RedisSessionModule.forRoot({ url: environment.redisUrl, events, commandTimeout }),'],
    why: 'express-session loses nothing here. It waits for its Redis client, which waits without limit unless you set one. nest-session gives up after 1 s, and answers with an error.',
  },
  everywhere: {
    title: 'Log out everywhere',
    about:
      'Two phones are logged in, and have a WebSocket open. A third device of the account ends all other sessions.',
    left: [
      'const all = (await called<StoredSession[]>((done) => sessionStore.all!(done as never))) ?? [];',
      'const others = all.filter(({ id, name }) => name === session.name && id !== session.id);',
      'await Promise.all(others.map(({ id }) => called((done) => sessionStore.destroy(id, done))));',
    ],
    right: ['return { ended: await this.sessions.endAll(session.principalName!, { except: session }) };'],
    why: 'express-session finds the sessions by reading those of all users, and ends them. It knows nothing of their sockets, so closing them is up to you. nest-session finds the sessions of an account by an index, and closes their sockets on all instances.',
  },
  'unpaid-order': {
    title: 'An order that nobody pays',
    about:
      'It is to be cancelled after 3 s. The instance that took the order is killed after 1 s. Wait 16 s for the rest.',
    left: ['setTimeout(cancel, SECONDS_LEFT * 1000).unref();'],
    right: ['await this.deadlines.schedule(paymentDue, id, { in: `${seconds}s`, data });'],
    why: 'express-session has no deadlines. The left shop has a timer in its process, as one begins with: a job queue would do better. nest-session keeps deadlines in Redis, and any instance finds them.',
  },
};
