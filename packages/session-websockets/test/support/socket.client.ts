import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { HttpAgent } from '@nest-session/testing';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import type { Platform } from './socket.app.js';

export interface SocketClientOptions {
  readonly headers?: Record<string, string>;
  /** Of socket.io. @default ['websocket'] */
  readonly transports?: string[];
  /** Of socket.io. */
  readonly namespace?: string;
  /** The origin of the server, where it is not that of the agent. */
  readonly origin?: string;
  readonly path?: string;
  /** A name in the query of the URL. */
  readonly query?: string;
}

/** A client of a gateway, with the cookies that an agent has when it connects. */
export interface SocketClient {
  /** Sends a message, and resolves to its reply; rejects when the gateway reports an exception. */
  ask(event: string, data?: unknown): Promise<any>;
  /** Sends a message. */
  tell(event: string, data?: unknown): void;
  /** Resolves when the server has closed the connection: to its reason. */
  readonly closed: Promise<string>;
  readonly isOpen: boolean;
}

const open: (() => void)[] = [];

/** Closes all clients; for `afterEach`. */
export function closeClients(): void {
  for (const close of open.splice(0)) close();
}

/** Resolves when the client is connected; rejects when it is refused, with what it was told as `cause`. */
export function connect(
  platform: Platform,
  agent: HttpAgent,
  options: SocketClientOptions = {},
): Promise<SocketClient> {
  return platform === 'ws' ? connectWs(agent, options) : connectIo(agent, options);
}

function headersOf(agent: HttpAgent, headers: Record<string, string> = {}): Record<string, string> {
  return { ...agent.headersFor('/'), ...headers };
}

async function connectIo(agent: HttpAgent, options: SocketClientOptions): Promise<SocketClient> {
  const { transports = ['websocket'], namespace = '', headers, origin = agent.origin, path = '/sockets' } = options;
  const { query = '' } = options;
  const extraHeaders = headersOf(agent, headers);
  const socket: Socket = io(origin + namespace, {
    path,
    query: query === '' ? {} : { [query]: '' },
    transports,
    extraHeaders,
    forceNew: true,
    reconnection: false,
  });
  open.push(() => void socket.disconnect());
  const closed = new Promise<string>((resolve) => socket.on('disconnect', resolve));
  await new Promise<void>((resolve, reject) => {
    socket.on('connect', resolve);
    socket.on('connect_error', (error: Error & { data?: unknown }) =>
      reject(new Error(`refused: ${error.message}`, { cause: error.data })),
    );
  });
  const { engine } = socket.io;
  if (engine.transport.name !== transports.at(-1))
    await new Promise<void>((resolve) => engine.once('upgrade', () => resolve()));
  return {
    closed,
    get isOpen() {
      return socket.connected;
    },
    tell: (event, data) => void socket.emit(event, data),
    ask: (event, data) =>
      new Promise((resolve, reject) => {
        socket.once('exception', (problem: { message: string }) => reject(new Error(problem.message)));
        socket.emit(event, data, (answer: { said: unknown }) => resolve(answer.said));
      }),
  };
}

async function connectWs(agent: HttpAgent, options: SocketClientOptions): Promise<SocketClient> {
  const { headers, origin = agent.origin, path = '/sockets', query = '' } = options;
  const url = origin.replace('http:', 'ws:') + path + (query === '' ? '' : `?${query}`);
  const socket = new WebSocket(url, { headers: headersOf(agent, headers) });
  open.push(() => socket.terminate());
  const closed = new Promise<string>((resolve) =>
    socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`)),
  );
  const refused = once(socket, 'unexpected-response').then(async (args) => {
    const [, response] = args as [unknown, IncomingMessage];
    const body = await text(response);
    const isJson = response.headers['content-type'] === 'application/json';
    throw new Error(`refused: ${response.statusCode}`, { cause: isJson ? JSON.parse(body) : body });
  });
  await Promise.race([once(socket, 'open'), refused]);
  refused.catch(() => undefined);
  const tell = (event: string, data?: unknown): void => socket.send(JSON.stringify({ event, data }));
  return {
    closed,
    get isOpen() {
      return socket.readyState === WebSocket.OPEN;
    },
    tell,
    ask: (event, data) =>
      new Promise((resolve, reject) => {
        socket.once('message', (text: Buffer) => {
          const answer = JSON.parse(text.toString()) as { event: string; data: any };
          if (answer.event === 'exception') reject(new Error(answer.data.message));
          else resolve(answer.data);
        });
        tell(event, data);
      }),
  };
}
