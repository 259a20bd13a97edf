import { Controller, Get, type INestApplication, Post } from '@nestjs/common';
import { Logger, LoggerModule, type Params } from 'nestjs-pino';
import { Session, SessionId } from '@nest-session/core';
import type { Companion } from './main.js';

@Controller()
class VisitController {
  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return { id: session.id };
  }

  @Get('visit')
  id(@SessionId() id: string) {
    return { id };
  }
}

const pinoHttp: Params['pinoHttp'] = {
  redact: ['req.headers.cookie', 'res.headers["set-cookie"]'],
  customProps: (request) => {
    const { session } = request as { session?: Session };
    return session?.isNew === false ? { sessionId: session.id } : {};
  },
};

export const companion: Companion = {
  // Without `forRoutes`, it logs no request on Fastify with NestJS 12.
  imports: [LoggerModule.forRoot({ pinoHttp, forRoutes: ['*path'] })],
  controllers: [VisitController],
  configure: (app: INestApplication) => app.useLogger(app.get(Logger)),
};
