import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

// Below the range from which Linux and macOS draw the ports of outgoing connections: a server that is away for a while
// must find its port again. In that range, a client that keeps trying would sooner or later connect to itself and hold
// the port.
const FIRST_PORT = 15_000;
const LAST_PORT = 32_000;

/** A port of 127.0.0.1 on which nobody listens at this moment; it may be taken before the caller listens on it. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnFreePort(server);
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Has the server listen on a free port of 127.0.0.1, and resolves to that port. */
export async function listenOnFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (await listens(server, port)) return port;
  }
}

/** Has the server listen on this port of 127.0.0.1; false when the port is taken. */
async function listens(server: Server, port: number): Promise<boolean> {
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
}
