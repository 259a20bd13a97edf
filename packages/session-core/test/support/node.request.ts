import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** A request of Node.js that no server has received. `properties` are added to its socket, such as `encrypted`. */
export function requestWith(headers: Record<string, string> = {}, properties: object = {}): IncomingMessage {
  const request = new IncomingMessage(Object.assign(new Socket(), properties));
  return Object.assign(request, { headers });
}
