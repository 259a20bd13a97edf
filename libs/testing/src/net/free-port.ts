import { once } from 'node:events';
import { createServer } from 'node:net';

// The ports are below the range for outgoing connections of Linux and macOS. In that range, a client that reconnects to
// a stopped server would sooner or later connect to itself and occupy the port that the server needs again.
const FIRST_PORT = 15_000;
const LAST_PORT = 32_000;

/**
 * Finds a free port of 127.0.0.1 for a server that your test stops and restarts on the same port. Another process may
 * take the port before you listen on it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  await new Promise((closed) => server.close(closed));
  return true;
}
