// https in front of the demo, where browsers bind their sessions: they do so over https alone.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';

/** Begins to listen with the certificate of two files, and hands all on to a port of this machine. */
export async function startTlsProxy({ cert, key, port, host }, to) {
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (incoming, response) => {
    const { method, url: path } = incoming;
    const headers = { ...incoming.headers, 'x-forwarded-proto': 'https' };
    const onward = request({ host: to.host, port: to.port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    // An instance may have been killed.
    onward.on('error', () => response.headersSent || response.writeHead(502).end());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await once(server.listen(port, host), 'listening');
  return {
    port: server.address().port,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
