import { ConflictException, Controller, Get, HttpCode, NotFoundException, Optional, Param } from '@nestjs/common';
import { ParseEnumPipe, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { type Fault, FAULTS, Faults } from './faults.js';
import { Journal } from './journal.js';

const SECONDS_LEFT = 4;
const MOST_LETTERS = 1000;
const known = new ParseEnumPipe(Object.fromEntries(FAULTS.map((fault) => [fault, fault])));

@Controller('faults')
export class FaultsController {
  constructor(
    private readonly faults: Faults,
    private readonly journal: Journal,
    @Optional() private readonly groups?: SessionEventGroups,
  ) {}

  /** Returns for each fault why it is not available, or null. It loads no session, so it works without Redis. */
  @Get()
  list(): Record<string, string | null> {
    return Object.fromEntries(FAULTS.map((fault) => [fault, this.faults.reason(fault)]));
  }

  /** Lets the visitor's own session expire soon, and causes the fault. */
  @Post(':fault')
  @HttpCode(204)
  async begin(@Session() session: Session, @Param('fault', known) fault: Fault): Promise<void> {
    const reason = this.faults.reason(fault);
    if (reason) throw new ConflictException(reason);
    await this.faults.begin(fault);
    if (fault === 'frozen') return;
    session.setAttribute('fault', fault);
    session.setAttribute('items', session.getAttributeOrDefault('items', ['lantern']));
    session.maxInactiveInterval = SECONDS_LEFT;
    await this.journal.write(session.id, { type: 'armed', fault });
  }

  /** Repairs the fault, and replays the event. The id of an ended session is hard to guess. */
  @Post('replay/:sessionId')
  @HttpCode(204)
  async replay(@Param('sessionId') sessionId: string): Promise<void> {
    const letters = (await this.groups?.deadLetters({ limit: MOST_LETTERS })) ?? [];
    const letter = letters.find(({ event }) => event?.sessionId === sessionId);
    if (!letter) throw new NotFoundException('This session has no dead letter left');
    await this.faults.repair(sessionId);
    await this.journal.write(sessionId, { type: 'replayed' });
    await this.groups?.replay(letter.id);
  }
}
