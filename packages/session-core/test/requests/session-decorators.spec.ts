import type { AddressInfo, Server } from 'node:net';
import { Controller } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { lastValueFrom } from 'rxjs';
import { io } from 'socket.io-client';
import { Session } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

describe('@Session() where there is no session says what to do', () => {
  it('in a message handler of a microservice', async () => {
    @Controller()
    class Prices {
      @MessagePattern('price')
      price(@Session() session: Session) {
        return session.id;
      }
    }
    let address: AddressInfo | undefined;
    const { log } = await startApp({
      controllers: [Prices],
      configure: async (app) => {
        const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } } as const;
        const service = app.connectMicroservice<MicroserviceOptions>(options);
        await app.startAllMicroservices();
        address = service.unwrap<Server>().address() as AddressInfo;
      },
    });
    const { port } = address!;
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
    await expect(lastValueFrom(client.send('price', {}))).rejects.toMatchObject({ message: 'Internal server error' });
    expect(log.lines.join('\n')).toContain(
      'send the session id along, and load the session by SessionRepository.findById()',
    );
    await client.close();
  });

  it('in a gateway without SessionWebSocketModule', async () => {
    @WebSocketGateway()
    class Gateway {
      @SubscribeMessage('who')
      who(@Session() session: Session) {
        return session.id;
      }
    }
    const { log, origin } = await startApp({ providers: [Gateway] });
    const client = io(origin, { transports: ['websocket'] });
    client.emit('who');
    await eventually(() =>
      expect(log.lines.join('\n')).toContain('import SessionWebSocketModule.forRoot() of @nest-session/websockets'),
    );
    client.disconnect();
  });
});
