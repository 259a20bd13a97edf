import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Post } from '@nestjs/common';
import { ServeStaticModule } from '@nestjs/serve-static';
import { Session } from '@nest-session/core';
import type { Companion } from './main.js';

@Controller('visit')
class VisitController {
  @Post()
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
  }

  @Get()
  show(@Session() session: Session) {
    return { visited: session.getAttributeOrDefault('visited', false) };
  }
}

/** Serves the folder of this program twice. */
const rootPath = dirname(fileURLToPath(import.meta.url));

export const companion: Companion = {
  session: { exclude: ({ url }) => url?.startsWith('/excluded/') === true },
  imports: [
    ServeStaticModule.forRoot(
      { rootPath, serveRoot: '/assets' },
      { rootPath, serveRoot: '/excluded', serveStaticOptions: { decorateReply: false } },
    ),
  ],
  controllers: [VisitController],
};
