import { Body, ConflictException, Controller, Get, HttpCode, NotFoundException, Optional, Param } from '@nestjs/common';
import { ParseEnumPipe, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { DeadlineEvent, DeadlineEvents } from '@nest-session/deadlines';
import { SessionEventGroups } from '@nest-session/redis';
import type { paymentDue } from '../payment-due.js';
import { type Fault, FAULTS, Faults } from './faults.js';
import { Journal } from './journal.js';

const SECONDS_LEFT = 4;
const MOST_LETTERS = 1000;
const ends = new ParseEnumPipe({ session: 'session', order: 'order' }, { optional: true });
const known = new ParseEnumPipe(Object.fromEntries(FAULTS.map((fault) => [fault, fault])));

@Controller('faults')
export class FaultsController {
  constructor(
    private readonly faults: Faults,
    private readonly journal: Journal,
    private readonly deadlines: DeadlineEvents,
    @Optional() private readonly groups?: SessionEventGroups,
  ) {}

  /** Returns for each fault why it is not available, or null. It loads no session, so it works without Redis. */
  @Get()
  list(): Record<string, string | null> {
    return Object.fromEntries(FAULTS.map((fault) => [fault, this.faults.reason(fault)]));
  }

  /**
   * Causes the fault, and lets the visitor's own session expire soon. For an order, the visitor places it after this.
   */
  @Post(':fault')
  @HttpCode(204)
  async begin(
    @Session() session: Session,
    @Param('fault', known) fault: Fault,
    @Body('end', ends) end: 'session' | 'order' = 'session',
  ): Promise<void> {
    const reason = this.faults.reason(fault);
    if (reason) throw new ConflictException(reason);
    await this.faults.begin(fault);
    if (fault === 'frozen') return;
    session.setAttribute('fault', fault);
    if (!session.getAttribute('items')?.length) session.setAttribute('items', ['lantern']);
    if (end === 'session') session.maxInactiveInterval = SECONDS_LEFT;
    await this.journal.write(session.id, { type: 'armed', fault });
  }

  /** Repairs the fault, and replays the event. Its id is hard to guess. */
  @Post('replay/:eventId')
  @HttpCode(204)
  async replay(@Param('eventId') eventId: string): Promise<void> {
    for (const groups of [this.groups, this.deadlines]) {
      const letters = (await groups?.deadLetters({ limit: MOST_LETTERS })) ?? [];
      const { id, event } = letters.find((letter) => letter.event?.id === eventId) ?? {};
      if (!id || !event) continue;
      const { sessionId } = event instanceof DeadlineEvent ? (event as DeadlineEvent<typeof paymentDue>).data : event;
      await this.faults.repair(eventId);
      await this.journal.write(sessionId, { type: 'replayed', eventId });
      await groups?.replay(id);
      return;
    }
    throw new NotFoundException('This event has no dead letter left');
  }
}
