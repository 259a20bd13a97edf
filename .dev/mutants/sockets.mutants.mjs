// Mistakes in what connections do with their session: WebSockets of gateways, and operations of GraphQL.
const byMessages = (test) => ({ spec: 'messages.spec.ts', test });
const byManyMessages = (test) => ({ spec: 'many-messages.spec.ts', test: `the messages of a client ${test}` });
const byRecovery = (test) => ({
  spec: 'state-recovery.spec.ts',
  test: `a client of socket.io that was interrupted ${test}`,
});
const byInstances = (test) => ({ spec: 'several-instances.spec.ts', test });
const byFacade = (test) => ({ spec: 'express-session.spec.ts', test });
const bySubscriptions = (test) => ({ spec: 'subscriptions.spec.ts', test });
const byGraphql = (test) => ({ spec: 'graphql.spec.ts', test });
const bySessions = (test) => ({ spec: 'sessions.spec.ts', test });

export const sockets = [
  {
    mistake: 'Messages that share a load share a session',
    in: 'GatewayClient',
    code: 'this.#closing ? [] : this.#sessions.detachedAgain(this.#request, id, load.messages)',
    instead: 'this.#sessions.detachedAgain(this.#request, id, 1).then(([each]) => Array(MOST_SHARING).fill(each))',
    killedBy: byManyMessages('that come at once share loads, each with a session of its own'),
  },
  {
    mistake: 'The property bag of a message is that of the handshake',
    in: 'DetachedSession.of',
    code: 'current?.request === request ? current : openings.get(request)',
    instead: 'openings.get(request)',
    killedBy: byFacade('client.request.session of ws is fresh in each message, and saved before the reply'),
  },
  {
    mistake: 'In a message, the sockets of all other clients have the session of its client',
    in: 'DetachedSession.of',
    code: 'current?.request === request ? current : openings.get(request)',
    instead: 'current ?? openings.get(request)',
    killedBy: byFacade('client.request.session of ws is the property bag that the parameters of a message have'),
  },
  {
    mistake: "Nest's own @Session() gives a gateway null",
    in: 'GatewayExplorer.#putEnhancers',
    code: 'fillSessionParameters(controller, name);',
    instead: '',
    killedBy: byFacade('without ExpressSessionModule, a message of ws has the session of the core alone'),
  },
  {
    mistake: 'A socket follows the login of the victim of a planted token',
    in: 'SessionEndListener',
    code: "this.connections.close(previousSessionId, 'session id changed');",
    instead: '',
    killedBy: byInstances(
      'the sockets of ws on another instance are closed when the session id changes, and do not follow the login',
    ),
  },
  {
    mistake: 'The sockets of an ended session are closed on one instance only',
    in: 'SessionEndListener',
    code: 'SessionDestroyedEvent, { broadcast: true }',
    instead: 'SessionDestroyedEvent',
    killedBy: byInstances('the sockets of ws on another instance are closed when the session is deleted'),
  },
  {
    mistake: 'A message is acknowledged before its session is saved',
    in: 'MessageInterceptor',
    code: 'concatMap((value) => concat(saved, of(value)))',
    instead: 'concatMap((value) => of(value))',
    killedBy: byMessages('a message to ws whose session cannot be saved is an exception, and is not acknowledged'),
  },
  {
    mistake: 'An acknowledgement by hand does not wait for the save',
    in: 'savedFirst',
    code: 'saving.then(acknowledge, () => undefined)',
    instead: 'saving.then(acknowledge, acknowledge)',
    killedBy: byMessages('a message that is acknowledged by hand is saved first'),
  },
  {
    mistake: 'What a guard changes before it refuses a message is lost',
    in: 'GatewaySockets.handle',
    code: 'await held?.save()?.catch(() => undefined);',
    instead: '',
    killedBy: byMessages('a message to ws that a guard refuses has its changes saved'),
  },
  {
    mistake: 'A message does not renew its session',
    in: 'MessageInterceptor',
    code: 'void held.session.touch.send();',
    instead: '',
    killedBy: byInstances(
      'the sockets of ws on another instance keep a session alive that they use, and are closed when one that they do not use expires',
    ),
  },
  {
    mistake: 'A handler that keeps sessions idle renews them',
    in: 'MessageInterceptor',
    code: 'held.session.keepIdle();',
    instead: '{}',
    killedBy: byInstances(
      'the sockets of ws on another instance keep a session alive that they use, and are closed when one that they do not use expires',
    ),
  },
  {
    mistake: 'A page of a foreign origin opens a socket of socket.io',
    in: 'allowRequests',
    code: 'if (!allows(request))',
    instead: 'if (false)',
    killedBy: byMessages('a gateway of socket.io on a port of its own has sessions, and refuses foreign pages'),
  },
  {
    mistake: 'A page of a foreign origin opens a WebSocket of ws',
    in: 'verifyClients',
    code: 'if (!allows(info.req))',
    instead: 'if (false)',
    killedBy: byMessages('a gateway of ws on a port of its own has sessions, and refuses foreign pages'),
  },
  {
    mistake: 'Other listeners see an upgrade that was refused',
    in: 'putBeforeUpgrades',
    code: "if (event === 'upgrade' && !accept(...(args as [IncomingMessage, Duplex]))) return true;",
    instead: "if (event === 'upgrade') accept(...(args as [IncomingMessage, Duplex]));",
    killedBy: bySubscriptions('nothing but this module sees a refused upgrade'),
  },
  {
    mistake: 'A subscription outlives its session',
    in: 'UpgradeListener',
    code: 'this.open.add(connection, ids);',
    instead: '',
    killedBy: bySubscriptions('subscriptions by Apollo end with the session'),
  },
  {
    mistake: 'A client that left while its session was loaded stays in the list',
    in: 'GatewayClient',
    code: 'if (this.#isGone) return;',
    instead: '',
    killedBy: byInstances('a client of socket.io that leaves while its session is loaded leaves nothing behind'),
  },
  {
    mistake: 'After missed events, sockets of ended sessions stay open',
    in: 'SessionEndListener.search',
    code: 'this.#search.start();',
    instead: '',
    killedBy: byInstances('sockets whose session is gone are closed when events were missed, and others stay open'),
  },
  {
    mistake: 'A client that recovers its connection has no session',
    in: 'GatewaySockets',
    code: 'recovery.skipMiddlewares = false;',
    instead: '{}',
    killedBy: byMessages('a client of socket.io that recovers its connection has its session'),
  },
  {
    mistake: 'The next user of a browser gets the rooms of the last one',
    in: 'GatewaySockets',
    code: 'isBoundTo(pid, client.id)',
    instead: 'true',
    killedBy: byRecovery('gets nothing of the user who has used its browser before'),
  },
  {
    mistake: 'An idle socket keeps the session of its handshake in memory',
    in: 'GatewayClient.forgetOpening',
    code: 'this.#opening = undefined;',
    instead: '',
    killedBy: { spec: 'idle-clients.spec.ts', test: 'clients of ws that say nothing keep no session in memory' },
  },
  {
    mistake: 'Any number of messages of a client waits for the store',
    in: 'GatewayClient.session',
    code: "if (++this.#waiting > MOST_WAITING) this.close('too many messages');",
    instead: 'this.#waiting++;',
    killedBy: byManyMessages('are handled until more wait than can, and then the client is closed once'),
  },
  {
    mistake: 'A message gets a session that was loaded before the message came',
    in: 'GatewayClient',
    code: 'if (this.#next === load) this.#next = undefined;',
    instead: '',
    killedBy: byManyMessages(
      'that come while a load is under way wait for the next one, and see what was stored before them',
    ),
  },
  {
    mistake: 'An event of a subscription has the session of its start',
    in: 'GraphqlOperation',
    code: 'return this.#info?.variableValues ?? this;',
    instead: 'return this.request;',
    killedBy: byGraphql('GraphQL by Apollo on Express has it in a subscription, fresh for each event'),
  },
  {
    mistake: 'A mutation over a connection loses its changes',
    in: 'handleInSession',
    code: 'held.save() ?? EMPTY',
    instead: 'EMPTY',
    killedBy: byGraphql(
      'GraphQL by Apollo on Express saves what a mutation over a connection changes, and cannot start or rotate a session there',
    ),
  },
  {
    mistake: 'A page of a foreign origin subscribes',
    in: 'load',
    code: 'if (!requests.allowsOriginOf(incoming)) throw new ForbiddenException(FOREIGN_ORIGIN);',
    instead: '',
    killedBy: byGraphql('GraphQL by Mercurius refuses a subscription of a page from a foreign origin'),
  },
  {
    mistake: 'An upgrade by a page of a foreign origin gets its session',
    in: 'Sessions.load',
    code: 'isUpgrade(incoming) && !this.requests.allowsOriginOf(incoming)',
    instead: 'false',
    killedBy: bySessions(
      'Sessions.load() gives null for a WebSocket that a page of another origin opens, and says so once',
    ),
  },
  {
    mistake: 'A page on http opens a connection over TLS',
    in: 'isOriginOf',
    code: "if (isSecure(request) && page.protocol !== 'https:') return false;",
    instead: '',
    killedBy: bySessions(
      'the origin of a connection is foreign where a connection over TLS is opened by a page that was not',
    ),
  },
  {
    mistake: 'The id of a session is changed over a connection, and its client loses it',
    in: 'DetachedSession',
    code: 'this.session.bindTo(NO_RESPONSE);',
    instead: '',
    killedBy: bySessions('Sessions.load() gives a session whose id cannot be changed, because no cookie can be sent'),
  },
  {
    mistake: 'A socket stays open when its session ends between the load and the connection',
    in: 'GatewayClient.connect',
    code: 'if (this.#closing) hangUp(this.#closing);',
    instead: '',
    killedBy: {
      spec: 'gateway.client.spec.ts',
      test: 'a client whose session ends at moment 2, and which leaves at 4, is closed once if it is still there, and leaves nothing behind, the end first',
    },
  },
  {
    mistake: 'The store is asked for all connections once a second for ever after a gap',
    in: 'SessionEndListener',
    code: 'if (this.#gaps === gaps) void this.#search.stop();',
    instead: '',
    killedBy: {
      spec: 'session-end.listener.spec.ts',
      test: 'each gap makes one search, also after a store that failed, which closes what has ended and is over',
    },
  },
  {
    mistake: 'A connection that was closed stays in the list',
    in: 'OpenConnections.remove',
    code: 'if (connections?.size === 0) this.#byId.delete(id);',
    instead: '',
    killedBy: {
      spec: 'left-visitors.spec.ts',
      test: 'an application holds no more when visitors over ws have left than before',
    },
  },
];
