import type { IncomingMessage } from 'node:http';
import { Controller, Get, HttpCode, NotFoundException, Param, Post, Req, UseGuards } from '@nestjs/common';
import { SkipCsrf } from '@nest-session/core';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { type Comparison, Referee } from './referee.js';
import { SCENARIOS } from './scenarios.js';

/** The buttons of the split screen. It loads no session of the visitor, so it works while Redis does not. */
@SkipCsrf()
@UseGuards(SameOriginGuard)
@Controller('comparison')
export class ComparisonController {
  constructor(private readonly referee: Referee) {}

  /** Returns for each scenario why it is not available, or null. */
  @Get()
  list(@Req() { socket }: IncomingMessage): Record<string, string | null> {
    this.referee.warm(socket.localPort!);
    return Object.fromEntries(Object.entries(SCENARIOS).map(([name, each]) => [name, this.referee.reason(each)]));
  }

  @Post(':scenario')
  @HttpCode(200)
  run(@Param('scenario') name: string, @Req() { socket }: IncomingMessage): Promise<Comparison> {
    if (!Object.hasOwn(SCENARIOS, name)) throw new NotFoundException('There is no such scenario');
    return this.referee.compare(name, socket.localPort!);
  }

  @Get(':run')
  lookAt(@Param('run') run: string): Promise<Comparison> {
    return this.referee.lookAt(run);
  }
}
