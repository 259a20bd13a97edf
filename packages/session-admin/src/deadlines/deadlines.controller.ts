import {
  BadRequestException,
  ConflictException,
  Delete,
  Get,
  HttpCode,
  Inject,
  Injectable,
  NotFoundException,
  Optional,
  Query,
  Req,
} from '@nestjs/common';
import { type Deadline, deadline, DeadlineDataError, Deadlines } from '@nest-session/deadlines';
import {
  DEADLINE_READER,
  type DeadlineReading,
  readData,
  refusalBody,
  type StoreReader,
} from '@nest-session/core/internal';
import {
  DeadlineDispatcher,
  type DeadlinePage,
  DeadlineStore,
  type StoredDeadline,
} from '@nest-session/deadlines/internal';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';
import { shownInstant, shownSeconds, shownValue } from '../http/shown.js';
import { Needs } from '../access/admin.guards.js';
import { AdminActions } from '../audit/admin-actions.js';
import { limitIn, numberIn, type Query as Parameters, requiredText, textIn } from '../http/query.js';

@Injectable()
export class WaitingDeadlines {
  constructor(
    @Inject(DeadlineDispatcher) private readonly dispatcher: Pick<DeadlineDispatcher, 'wantedTypes'>,
    @Optional() @Inject(Deadlines) private readonly deadlines?: Deadlines,
    @Optional() @Inject(DeadlineStore) private readonly store?: DeadlineStore,
    @Optional() @Inject(DEADLINE_READER) private readonly reader?: StoreReader<DeadlineReading>,
  ) {}

  get areThere(): boolean {
    return this.deadlines !== undefined && this.store !== undefined;
  }

  /** @throws NotFoundException where there are none */
  get existing(): { readonly deadlines: Deadlines; readonly store: DeadlineStore } {
    const { deadlines, store } = this;
    if (!deadlines || !store) throw new NotFoundException('This application has no deadlines');
    return { deadlines, store };
  }

  /** The names of all that wait. A store that cannot tell them is asked for those that the application handles. */
  async names() {
    if (!this.areThere) return [];
    const waiting = this.reader ? (await this.reader.read()).waiting : await this.#handled();
    return waiting.map(({ name, count, overdue }) => ({
      name,
      count,
      /** Seconds since the first of them was due; 0: it is not due yet. Null where the store does not tell. */
      overdue: overdue === undefined ? null : shownSeconds(overdue),
    }));
  }

  async #handled(): Promise<{ name: string; count: number; overdue?: number }[]> {
    const names = new Set([...this.dispatcher.wantedTypes(), ...this.dispatcher.wantedTypes({ broadcast: true })]);
    const { store } = this.existing;
    return Promise.all([...names].toSorted().map(async (name) => ({ name, count: await store.count(name) })));
  }
}

/** @throws BadRequestException for a text that is no name of a kind */
function kindOf(name: string): Deadline<unknown> {
  try {
    return deadline<unknown>(name);
  } catch {
    throw new BadRequestException('The parameter name is no name of deadlines');
  }
}

// The year 10000.
const LAST_INSTANT = 253_402_300_800_000;

export class DeadlinesController {
  constructor(
    @Inject(WaitingDeadlines) private readonly waiting: WaitingDeadlines,
    @Inject(AdminActions) private readonly actions: AdminActions,
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
  ) {}

  @Get('deadlines')
  async list(@Query() query: Parameters) {
    const name = textIn(query, 'name');
    if (name === undefined) return { deadlines: await this.waiting.names() };
    const [after, limit] = [placeIn(query), limitIn(query)];
    const { store } = this.waiting.existing;
    kindOf(name);
    // One more tells whether there is another page.
    const found = await store.list(name, { before: undefined, after, limit: limit + 1 });
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const next = found.length > limit && last ? { key: last.key, dueAt: last.dueAt } : null;
    return { deadlines: page.map((each) => this.#show(name, each, store)), next };
  }

  @Delete('deadlines')
  @HttpCode(204)
  @Needs('cancelDeadline')
  async cancel(@Req() request: object, @Query() query: Parameters): Promise<void> {
    const [name, key] = [requiredText(query, 'name'), requiredText(query, 'key')];
    const kind = kindOf(name);
    const { deadlines, store } = this.waiting.existing;
    // Not by its key, which may be a name or an address.
    const target = `deadline ${JSON.stringify(name)} (${(await store.get(name, key))?.id ?? 'not waiting'})`;
    const action = { action: 'cancel-deadline', target } as const;
    const reply = await this.actions.run(request, action, () => deadlines.cancel(kind, key));
    if (reply === 'fired') throw new ConflictException(refusalBody('deadline-fired'));
    if (reply === 'none') throw new NotFoundException('No deadline waits under this key');
  }

  #show(name: string, { id, key, text, dueAt, scheduledAt }: StoredDeadline, store: DeadlineStore) {
    const { data } = this.options;
    return {
      id,
      key,
      dueTime: shownInstant(dueAt),
      scheduledTime: shownInstant(scheduledAt),
      size: Buffer.byteLength(text ?? ''),
      ...shownValue(data && (() => data(name, readData(name, text, store.serializer, DeadlineDataError)))),
    };
  }
}

/** Where a page begins; undefined for the first. @throws BadRequestException where half of it is missing */
function placeIn(query: Parameters): DeadlinePage['after'] {
  if (textIn(query, 'afterKey') === undefined && textIn(query, 'afterDueAt') === undefined) return undefined;
  const key = requiredText(query, 'afterKey');
  requiredText(query, 'afterDueAt');
  return { key, dueAt: numberIn(query, 'afterDueAt', 0, { atLeast: 0, atMost: LAST_INSTANT }) };
}
