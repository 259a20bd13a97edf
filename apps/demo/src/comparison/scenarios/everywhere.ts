import { ACCOUNT } from '../../sides/side.js';
import type { LiveSocket } from '../live-socket.js';
import { duration, good, type Scenario, wrong } from '../scenario.js';
import type { Visitor } from '../visitor.js';

/** A user signs out everywhere, while two phones of his account have a socket open. */
export const everywhere: Scenario = {
  prepare: (visitor) => visitor.signIn(),

  async act(visitor) {
    const phones = [visitor.another(), visitor.another()];
    const sockets = await Promise.all(phones.map(connect));
    try {
      const { status, took } = await visitor.send('DELETE', 'sessions');
      const closed = await Promise.all(sockets.map((socket) => socket.isClosed()));
      const accounts = await Promise.all(phones.map((phone) => phone.account()));
      const open = sockets.filter((_, i) => !closed[i]);
      const owners = await Promise.all(open.map((socket) => socket.owner()));
      const loggedIn = accounts.filter(({ name }) => name === ACCOUNT).length;
      const phonesAre = loggedIn === 0 ? 'Both phones are logged out' : `${loggedIn} of 2 phones are still logged in`;
      const text = `The logout was answered (${status}) after ${duration(took)}. ${phonesAre}`;
      if (loggedIn === 0 && open.length === 0) return good(`${text}, and the server has closed both sockets.`);
      return wrong(
        `${text}, but ${open.length} of 2 sockets are open and answer as ${[...new Set(owners)].join() || 'nobody'}.`,
      );
    } finally {
      for (const socket of sockets) socket.close();
    }
  },
};

async function connect(phone: Visitor): Promise<LiveSocket> {
  await phone.signIn();
  return phone.openSocket();
}
