// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { SessionModule } from '@nest-session/core';
import {
  type ReadSpringSessionOptions,
  type SharedSpringSessionOptions,
  SpringJsonSerializer,
  SpringSessionModule,
  type SpringSessionModuleOptions,
  type SpringSessionOptionsFactory,
  springSessions,
} from '@nest-session/spring';
import { expectTypeOf } from 'expect-type';

const url = 'redis://localhost:6379';

export const imports = [
  SessionModule.forRoot(springSessions()),
  SpringSessionModule.forRoot({ url, mode: 'read', namespace: 'spring:session', requireAtStart: true }),
  SpringSessionModule.forRoot({
    url,
    mode: 'shared',
    serializer: new SpringJsonSerializer('typed'),
    events: { group: 'shop' },
    cleanup: { batchSize: 10 },
    replicas: 1,
  }),
];

// @ts-expect-error what the application does is to be said
SpringSessionModule.forRoot({ url });
// @ts-expect-error nothing is handled where sessions are read
SpringSessionModule.forRoot({ url, mode: 'read', events: { group: 'shop' } });
// @ts-expect-error the form of the sessions is that of Spring
SpringSessionModule.forRoot({ url, mode: 'shared', partitions: 4 });

class Settings implements SpringSessionOptionsFactory {
  createSpringSessionOptions(): SpringSessionModuleOptions {
    return { url, mode: 'shared' };
  }
}

export const injected = [
  SpringSessionModule.forRootAsync({ useClass: Settings }),
  SpringSessionModule.forRootAsync({ useFactory: () => ({ url, mode: 'read' }) }),
];

expectTypeOf<ReadSpringSessionOptions | SharedSpringSessionOptions>().toEqualTypeOf<SpringSessionModuleOptions>();
