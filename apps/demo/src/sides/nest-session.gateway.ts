import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { Session } from '@nest-session/core';
import { SOCKET } from './side.js';

/** Tells each socket of the right side who it is. */
@WebSocketGateway({ path: SOCKET })
export class NestSessionGateway {
  @SubscribeMessage('who')
  who(@Session() session: Session): { readonly event: 'you'; readonly data: string | null } {
    return { event: 'you', data: session.principalName ?? null };
  }
}
