import { FuzzedBrowser } from './fuzzed.browser.js';
import { render, send } from './fuzzed.connection.js';
import type { ConnectionPlan, RequestPlan, VisitPlan } from './fuzzed.plans.js';
import type { Response } from './http-responses.js';

/** What the value begins with that sessions have of their visit. */
export const OWNER = 'owner-of-visit-';

interface Shown {
  readonly isNew?: boolean;
  readonly owner?: unknown;
  readonly owners?: readonly unknown[];
}

/** The visits of one application: each has two new browsers. Throws at the first response that must not be. */
export class FuzzedVisits {
  /** Every token that the application has sent. */
  readonly issued = new Set<string>();
  /** How many responses had each status. */
  readonly statuses: Record<number, number> = {};
  requests = 0;
  visits = 0;

  /**
   * @param kind of the browsers: both of cookies, or one of cookies and one of the header
   * @param opening the request with which each browser begins
   */
  constructor(
    private readonly url: string,
    private readonly kind: 'cookies' | 'both',
    private readonly opening?: string,
  ) {}

  async run(plan: VisitPlan): Promise<void> {
    const number = ++this.visits;
    const visit = new Visit(this, this.url, `${OWNER}${number}-${number}`, this.kind);
    const openings = this.opening === undefined ? [] : ([0, 1] as const).map(plainly.bind(undefined, this.opening));
    try {
      for (const group of [openings, ...plan]) await Promise.all(group.map((connection) => visit.connect(connection)));
    } finally {
      for (const { issued } of visit.browsers) for (const token of issued) this.issued.add(token);
    }
  }

  count({ status }: Response): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }
}

function plainly(line: string, browser: 0 | 1): ConnectionPlan {
  const request = { line, presents: [], sendsCsrf: false, lines: [], body: undefined };
  return { browser, requests: [request], edits: [], cuts: [], end: 'read' };
}

class Visit {
  readonly browsers: readonly [FuzzedBrowser, FuzzedBrowser];

  constructor(
    private readonly visits: FuzzedVisits,
    private readonly url: string,
    private readonly owner: string,
    kind: 'cookies' | 'both',
  ) {
    this.browsers = [new FuzzedBrowser('cookies'), new FuzzedBrowser(kind === 'both' ? 'header' : 'cookies')];
  }

  async connect(plan: ConnectionPlan): Promise<void> {
    const browser = this.browsers[plan.browser];
    const rendered = render(plan, (request) => this.#identity(request, plan.browser));
    this.visits.requests += plan.requests.length;
    const { bytes, isClear } = rendered;
    let shown = bytes.toString('latin1');
    try {
      const { responses, isWhole, wasReset } = await send(this.url, rendered, plan);
      shown += `\n--- was answered by ---\n${JSON.stringify(responses, undefined, 1)}`;
      for (const [i, response] of responses.entries()) {
        this.visits.count(response);
        this.#check(response, isClear ? plan.requests[i] : undefined);
        browser.keep(response);
      }
      if (plan.end !== 'read' || !isClear || wasReset) return;
      const isRefused = responses.at(-1)?.headers.get('connection') === 'close';
      if (!isWhole) throw new Error('The last response is not whole');
      if (responses.length < plan.requests.length && !isRefused) throw new Error('Responses are missing');
    } catch (error) {
      throw new Error(`${(error as Error).message}\n\n${shown.slice(0, 4000)}`, { cause: error });
    }
  }

  #identity({ presents, sendsCsrf }: RequestPlan, of: 0 | 1): string[] {
    const browser = this.browsers[of];
    const { csrfToken } = browser;
    const csrf = sendsCsrf && csrfToken !== undefined ? [`X-CSRF-Token: ${csrfToken}`] : [];
    return [...browser.present(presents, this.browsers[1 - of]!), `X-Owner: ${this.owner}`, ...csrf];
  }

  #check(response: Response, request: RequestPlan | undefined): void {
    const { status, headers, body } = response;
    if (status >= 500) throw new Error(`The response is a ${status}`);
    if (headers.has('x-injected')) throw new Error('A request has injected a header');
    for (const { issued } of this.browsers) {
      for (const token of issued) if (body.includes(token)) throw new Error('The body has a token');
    }
    if (!headers.get('content-type')?.startsWith('application/json') || body === '') return;
    const { isNew, owner, owners = [] } = JSON.parse(body) as Shown;
    for (const each of [owner, ...owners]) {
      if (each !== undefined && each !== null && each !== this.owner) {
        throw new Error(`The response shows the session of ${JSON.stringify(each)}`);
      }
    }
    const isForged = request !== undefined && request.presents.length > 0 && request.presents.every(isFault);
    if (isForged && isNew === false) throw new Error('A damaged token has opened a session');
  }
}

function isFault(each: RequestPlan['presents'][number]): boolean {
  return typeof each === 'object' || each === 'hundred others';
}
