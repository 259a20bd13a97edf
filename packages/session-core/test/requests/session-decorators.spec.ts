import { createRequire } from 'node:module';
import type { AddressInfo, Server } from 'node:net';
import { runInThisContext } from 'node:vm';
import * as common from '@nestjs/common';
import { type ArgumentMetadata, Controller, type PipeTransform, type Type, ValidationPipe } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { lastValueFrom } from 'rxjs';
import { io } from 'socket.io-client';
import { plainToInstance } from 'class-transformer';
import { validate } from 'class-validator';
import type * as TypeScript from 'typescript';
import * as core from '../../src/index.js';
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

const SOURCE = `
import { Body, Controller, Post } from '@nestjs/common';
import { Session, SessionAttribute, SessionId } from '@nest-session/core';

class Base {
  @Post('inherited')
  inherited(@Session() session: Session) {
    session.setAttribute('visits', 2);
    return { visits: session.getAttribute('visits') };
  }

  @Post('overridden')
  overridden(@Session() session: Session) {}
}

@Controller()
export class Compiled extends Base {
  @Post('given')
  given(
    @Session() session: Session,
    @SessionId() id: string,
    @SessionAttribute('visits') visits: number,
    @Body() body: object,
    @Session() again: Session,
  ) {
    return { isSame: session === again, isId: id === session.id, visits: visits ?? null, body };
  }

  @Post('overridden')
  override overridden(@Session() session: Session) {
    return { isOverridden: !session.isNew };
  }
}`;

const require = createRequire(import.meta.url);

/** The part of @swc/core that is used here. */
interface Swc {
  transformSync(source: string, options: object): { readonly code: string };
}

/** How compilers record the types of parameters. */
const COMPILERS: Readonly<Record<string, () => string>> = {
  tsc: () => {
    const ts = require('typescript') as typeof TypeScript;
    const { ES2022: target } = ts.ScriptTarget;
    const module = ts.ModuleKind.CommonJS;
    const compilerOptions = { target, module, experimentalDecorators: true, emitDecoratorMetadata: true };
    return ts.transpileModule(SOURCE, { compilerOptions }).outputText;
  },
  SWC: () => {
    const { transformSync } = require('@swc/core') as Swc;
    const transform = { legacyDecorator: true, decoratorMetadata: true };
    const jsc = { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, transform } as const;
    return transformSync(SOURCE, { jsc, module: { type: 'commonjs' } }).code;
  },
  'SWC without metadata, and metadata by hand': () => {
    const { transformSync } = require('@swc/core') as Swc;
    const jsc = {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true },
    } as const;
    return `${transformSync(SOURCE, { jsc, module: { type: 'commonjs' } }).code}
      const { Session } = require('@nest-session/core');
      for (const [name, types] of Object.entries({ inherited: [Session], overridden: [Session] }))
        Reflect.defineMetadata('design:paramtypes', types, Base.prototype, name);
      Reflect.defineMetadata('design:paramtypes', [Session], Compiled.prototype, 'overridden');
      Reflect.defineMetadata('design:paramtypes', [Session, String, Number, Object, Session], Compiled.prototype, 'given');`;
  },
};

function controllerOf(code: string): Type {
  const modules: Record<string, unknown> = { '@nestjs/common': common, '@nest-session/core': core };
  const exports: { Compiled?: Type } = {};
  // The types that it records are those of this test.
  const globals = { Reflect, Object, String, Number };
  const parameters = ['exports', 'require', ...Object.keys(globals)].join(', ');
  const load = runInThisContext(`(function (${parameters}) {${code}\n})`) as (...args: unknown[]) => void;
  load(exports, (name: string) => modules[name] ?? require(name), ...Object.values(globals));
  return exports.Compiled!;
}

/** The pipe of the documentation of Nest, in the chapter "Pipes". */
class DocumentedPipe implements PipeTransform {
  async transform(value: unknown, { metatype }: ArgumentMetadata): Promise<unknown> {
    if (!metatype || [String, Boolean, Number, Array, Object].includes(metatype as never)) return value;
    await validate(plainToInstance(metatype, value) as object);
    return value;
  }
}

const PIPES: Readonly<Record<string, () => PipeTransform>> = {
  'the pipe of the documentation of Nest': () => new DocumentedPipe(),
  'ValidationPipe that validates custom decorators': () =>
    new ValidationPipe({ transform: true, whitelist: true, validateCustomDecorators: true }),
};

describe.each(Object.keys(COMPILERS))('@Session() in a class compiled by %s', (compiler) => {
  it.each(Object.keys(PIPES))('passes a global pipe: %s', async (pipe) => {
    const { agent } = await startApp({
      controllers: [controllerOf(COMPILERS[compiler]!())],
      configure: (app) => app.useGlobalPipes(PIPES[pipe]!()),
    });
    const client = agent();
    expect((await client.post('/inherited')).json()).toEqual({ visits: 2 });
    expect((await client.post('/overridden')).json()).toEqual({ isOverridden: true });
    const given = { isSame: true, isId: true, visits: 2, body: { a: 1 } };
    expect((await client.post('/given', { a: 1 })).json()).toEqual(given);
  });
});
