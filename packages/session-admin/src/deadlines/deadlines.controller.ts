import { ConflictException, Delete, Get, HttpCode, Inject, NotFoundException, Query, Req } from '@nestjs/common';
import { Needs } from '../access/access.guard.js';
import { AdminActions } from '../audit/admin-actions.js';
import { limitIn, numberIn, type Query as Parameters, requiredText, textIn } from '../http/query.js';
import { type DeadlinePosition, NONE, WaitingDeadlines } from './waiting-deadlines.js';

// The year 10000.
const LAST_INSTANT = 253_402_300_800_000;

/** The deadlines that wait. */
export class DeadlinesController {
  constructor(
    @Inject(WaitingDeadlines) private readonly waiting: WaitingDeadlines,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  /** The names or, with `name`, the deadlines of one. */
  @Get('deadlines')
  async list(@Query() query: Parameters) {
    const name = textIn(query, 'name');
    if (name === undefined) return { deadlines: await this.waiting.names() };
    return this.waiting.list(name, placeIn(query), limitIn(query));
  }

  @Delete('deadlines')
  @HttpCode(204)
  @Needs('cancelDeadline')
  async cancel(@Req() request: object, @Query() query: Parameters): Promise<void> {
    const [name, key] = [requiredText(query, 'name'), requiredText(query, 'key')];
    // Not by its key, which may be a name or an address.
    const target = `deadline ${JSON.stringify(name)} (${await this.waiting.idOf(name, key)})`;
    const action = { action: 'cancel-deadline', target } as const;
    const reply = await this.actions.run(request, action, () => this.waiting.cancel(name, key));
    if (reply === 'fired') throw new ConflictException('This deadline has come already');
    if (reply === 'none') throw new NotFoundException(NONE);
  }
}

/** Where a page begins; undefined for the first. @throws BadRequestException where half of it is missing */
function placeIn(query: Parameters): DeadlinePosition | undefined {
  if (textIn(query, 'afterKey') === undefined && textIn(query, 'afterDueAt') === undefined) return undefined;
  const key = requiredText(query, 'afterKey');
  requiredText(query, 'afterDueAt');
  return { key, dueAt: numberIn(query, 'afterDueAt', 0, { atLeast: 0, atMost: LAST_INSTANT }) };
}
