/** The buttons of the split screen: what each one does to both sides, and why they differ. */
export const SCENARIOS = {
  'two-tabs': {
    title: 'Two tabs add at once',
    about: 'There is an apple in the cart. Two tabs of one browser add a lantern and a teapot at the same time.',
    why: 'express-session stores the whole session when a request ends, so the last one wins. nest-session finds that the cart has changed meanwhile, and adds to what is there.',
  },
  redirect: {
    title: 'Redirect after a login, slow Redis',
    about: 'The login redirects to the account. Redis holds back all writes for 0.7 s meanwhile.',
    why: 'express-session sends the redirect before Redis has the session, unless the handler calls save() first. nest-session always stores, then answers.',
  },
  'sign-out': {
    title: 'Log out during a slow request',
    about: 'One tab logs out, while a request of another tab takes 1.5 s.',
    why: 'express-session stores what the slow request had loaded, and so brings the session back. nest-session saves nothing into a session that has ended.',
  },
  'stolen-cookie': {
    title: 'A copied cookie',
    about:
      'dora has signed in a minute ago. Malware copies her session cookie, and a thief puts it into another browser.',
    why: 'express-session serves whoever has the cookie. nest-session has bound the session to her browser, which keeps a key that cannot be copied and proves every few minutes that it has it. Who copies all of her cookies gets in for ten minutes at most. Browsers that cannot bind are served as on the left.',
  },
  killed: {
    title: 'kill -9 before the mail',
    about:
      'A session runs out after 3 s, with a lantern in its cart. The instance that is about to write a mail about it is killed. Wait 20 s for the rest.',
    why: 'express-session reports no end. The left shop listens to Redis itself, which tells each instance once. One of them claims the mail, so that there are not two, and the claim dies with it. nest-session hands the event to another instance.',
  },
  frozen: {
    title: 'Redis frozen',
    about: 'Redis replies to nobody for 5 s. A visitor with a cart opens the page meanwhile.',
    why: 'express-session loses nothing here. It waits for its Redis client, which waits without limit unless you set one. nest-session gives up after 1 s, and answers with an error.',
  },
  everywhere: {
    title: 'Log out everywhere',
    about:
      'Two phones are logged in, and have a WebSocket open. A third device of the account ends all other sessions.',
    why: 'express-session finds the sessions by reading those of all users, and ends them. It knows nothing of their sockets, so closing them is up to you. nest-session finds the sessions of an account by an index, and closes their sockets on all instances.',
  },
  'unpaid-order': {
    title: 'An order that nobody pays',
    about:
      'It is to be cancelled after 3 s. The instance that took the order is killed after 1 s. Wait 16 s for the rest.',
    why: 'express-session has no deadlines. The left shop has a timer in its process, as one begins with: a job queue would do better. nest-session keeps deadlines in Redis, and any instance finds them.',
  },
};
