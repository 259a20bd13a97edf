import { type IncomingMessage, ServerResponse } from 'node:http';
import { Inject } from '@nestjs/common';
import { ConnectedSocket, type OnGatewayConnection, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { Request, RequestHandler, Response } from 'express';
import { SOCKET } from '../side.js';

/** The middleware of express-session, which the handshake of a socket has to pass as well. */
export const MIDDLEWARE = Symbol('express-session');

/** Tells each socket of the left side who it is. */
@WebSocketGateway({ path: SOCKET })
export class ExpressSessionGateway implements OnGatewayConnection {
  readonly #handshakes = new WeakMap<object, Promise<Request>>();

  constructor(@Inject(MIDDLEWARE) private readonly middleware: RequestHandler) {}

  handleConnection(client: object, handshake: IncomingMessage): void {
    const passed = new Promise<Request>((resolve) => {
      const request = handshake as Request;
      void this.middleware(request, new ServerResponse(handshake) as Response, () => resolve(request));
    });
    this.#handshakes.set(client, passed);
  }

  @SubscribeMessage('who')
  async who(@ConnectedSocket() client: object): Promise<{ readonly event: 'you'; readonly data: string | null }> {
    const { session } = (await this.#handshakes.get(client))!;
    return { event: 'you', data: session.name ?? null };
  }
}
