import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the range from which Linux and macOS draw the ports of outgoing connections: a server that stops for a while
// needs its port again. In that range, a client that reconnects would sooner or later connect to itself and hold it.
const FIRST_PORT = 15_000;
const LAST_PORT = 32_000;

/**
 * Finds a free port of 127.0.0.1, for a server that your test stops and starts again on the same port. Another process
 * may take the port before you listen on it.
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
