// An application of NestJS that shares the sessions of Spring, without routes.
import 'reflect-metadata';
import { type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, SessionModule } from '@nest-session/core';
import { type SpringJson, SpringJsonSerializer, SpringSessionModule, springSessions } from '@nest-session/spring';
import { SessionEventRecorder } from '@nest-session/testing';

@Injectable()
export class Recorder extends SessionEventRecorder {}

export interface NestSide {
  readonly context: INestApplicationContext;
  readonly sessions: IndexedSessionRepository;
  readonly events: SessionEventRecorder;
}

/** Starts an instance. */
export async function startNest(url: string, form: SpringJson): Promise<NestSide> {
  @Module({
    imports: [
      SessionModule.forRoot(springSessions()),
      // Longer than usual: the machine has several applications at a time.
      SpringSessionModule.forRoot({
        url,
        mode: 'shared',
        serializer: new SpringJsonSerializer(form),
        commandTimeout: '20s',
      }),
    ],
    providers: [Recorder],
  })
  class SharingModule {}

  const context = await NestFactory.createApplicationContext(SharingModule, {
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  return {
    context,
    sessions: context.get(IndexedSessionRepository, { strict: false }),
    events: context.get(Recorder),
  };
}
