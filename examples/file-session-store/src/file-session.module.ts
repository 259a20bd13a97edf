import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository } from '@nest-session/core';
import { PollingLoop, type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { FileSessionRepository } from './file-session.repository.js';

@Module({})
export class FileSessionModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #loop: PollingLoop;

  constructor(@Inject(FileSessionRepository) private readonly repository: FileSessionRepository) {
    this.#loop = new PollingLoop('The removal of expired sessions', 60_000, () => repository.removeExpired());
  }

  static forRoot({ folder }: { folder: string }): DynamicModule {
    return {
      module: FileSessionModule,
      global: true,
      providers: [
        {
          provide: FileSessionRepository,
          inject: [SESSION_OPTIONS],
          useFactory: (options: ResolvedSessionOptions) => new FileSessionRepository({ ...options, folder }),
        },
        { provide: IndexedSessionRepository, useExisting: FileSessionRepository },
        { provide: SessionRepository, useExisting: FileSessionRepository },
      ],
      exports: [FileSessionRepository, IndexedSessionRepository, SessionRepository],
    };
  }

  /** Makes the start fail when the folder cannot be read. */
  async onApplicationBootstrap(): Promise<void> {
    await this.repository.removeExpired();
    this.#loop.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.#loop.stop();
  }
}
