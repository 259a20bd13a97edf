/** Nothing is written: what the application has is not understood. */
export class Refusal extends Error {
  constructor(reason: string) {
    super(`${reason}. Nothing was changed. ${BY_HAND}`);
  }
}

const BY_HAND = `Name the file of your root module with --module, or write this by hand:

    import { SessionModule } from '@nest-session/core';
    import { RedisSessionModule } from '@nest-session/redis';

    imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: process.env.REDIS_URL })]

The page "Getting started" says what else belongs to it.`;
