import type { ServerResponse } from 'node:http';
import { Body, Controller, Injectable, Module, Post, Res } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { OnSessionEvent, Session, SessionCreatedEvent } from '@nest-session/core';

/** Each kind of handler, all of which fail. */
@Injectable()
export class FailingHandlers {
  @OnSessionEvent(SessionCreatedEvent)
  fail() {
    throw new Error('on purpose');
  }

  @OnSessionEvent(SessionCreatedEvent, { broadcast: true })
  failToHear() {
    throw new Error('on purpose');
  }

  @OnEvent('session.deleted', { suppressErrors: false })
  failToListen() {
    throw new Error('on purpose');
  }
}

@Controller()
class TooLateController {
  @Post('too-late')
  tooLate(@Session() session: Session, @Res() response: ServerResponse, @Body() { value }: { value: unknown }) {
    response.write('begun');
    session.setAttribute('late', value);
    response.end();
  }
}

/** A route that changes the session when the headers of its response were sent. */
@Module({ controllers: [TooLateController] })
export class TooLateModule {}
