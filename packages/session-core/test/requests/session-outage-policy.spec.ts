import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Param,
  Post,
  UseGuards,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Session, SessionContext, SessionOutagePolicy } from '../../src/index.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

const UNAVAILABLE = {
  statusCode: 503,
  message: 'Session store unavailable',
  error: 'Service Unavailable',
  reason: 'store-unavailable',
};

@Injectable()
class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getRequest<{ session: Session }>().session.getAttribute('user');
    return true;
  }
}

let begun: string[] = [];

@Controller()
class PlainController {
  @Post('login')
  login(@Session() session: Session) {
    session.setAttribute('user', 'ann');
  }

  @Post('order')
  @SessionOutagePolicy('reject')
  order() {
    begun.push('order');
    return { ordered: true };
  }

  @Post('undecided')
  undecided() {
    begun.push('undecided');
    return { ordered: true };
  }
}

const CHANGES: Readonly<Record<string, (session: Session) => unknown>> = {
  attribute: (session) => session.setAttribute('seen', true),
  removal: (session) => session.removeAttribute('seen'),
  update: (session) => session.updateAttribute('seen', () => true),
  id: (session) => session.changeSessionId(),
  end: (session) => session.invalidate(),
  interval: (session) => (session.maxInactiveInterval = 60),
  principal: (session) => (session.principalName = 'ann'),
};

@Controller('shop')
@SessionOutagePolicy('anonymous')
class ShopController {
  constructor(private readonly context: SessionContext) {}

  @Get()
  home(@Session() session: Session) {
    const { isAvailable } = this.context;
    return { user: session.getAttributeOrDefault('user', 'nobody'), isNew: session.isNew, isAvailable };
  }

  @Get('guarded')
  @UseGuards(SignedIn)
  guarded(@Session() session: Session) {
    return { user: session.getAttributeOrDefault('user', 'nobody') };
  }

  @Get('saved')
  async saved(@Session() session: Session) {
    return { outcome: await session.save() };
  }

  @Post('change/:what')
  async change(@Session() session: Session, @Param('what') what: string) {
    await CHANGES[what]!(session);
    return { changed: true };
  }

  /** The only handler that needs the session, in a controller whose policy is anonymous. */
  @Get('checkout')
  @SessionOutagePolicy('reject')
  checkout() {
    begun.push('checkout');
    return { ordered: true };
  }
}

afterEach(closeApps);
beforeEach(() => {
  begun = [];
});

describe.each(['express', 'fastify'] as const)('when the store fails to load a session, on %s,', (platform) => {
  async function start() {
    const app = await startApp({ platform, controllers: [PlainController, ShopController] });
    const client = app.agent();
    await client.post('/login');
    app.store.break('load');
    return { ...app, client };
  }

  it.each(['/order', '/shop/checkout'])(
    'a handler with the policy reject is not called until the store works again: %s',
    async (path) => {
      const { client, store } = await start();
      const method = path === '/order' ? 'POST' : 'GET';
      const response = await client.request(method, path);
      expect([response.status, response.json(), response.setCookies]).toEqual([503, UNAVAILABLE, []]);
      expect(begun).toEqual([]);
      store.repair();
      expect((await client.request(method, path)).json()).toEqual({ ordered: true });
    },
  );

  it('a handler with the policy reject is called for requests without a session', async () => {
    const { agent } = await start();
    expect((await agent().post('/order')).status).toBe(201);
  });

  it('a handler without a policy that does not use the session is called', async () => {
    const { client } = await start();
    expect((await client.post('/undecided')).status).toBe(201);
    expect(begun).toEqual(['undecided']);
  });

  it('a handler with the policy anonymous receives an empty session, and so do its guards', async () => {
    const { client, store } = await start();
    const response = await client.get('/shop');
    expect([response.status, response.setCookies]).toEqual([200, []]);
    expect(response.json()).toEqual({ user: 'nobody', isNew: true, isAvailable: false });
    expect((await client.get('/shop/guarded')).json()).toEqual({ user: 'nobody' });
    expect((await client.get('/shop/saved')).json()).toEqual({ outcome: 'saved' });
    store.repair();
    expect((await client.get('/shop')).json()).toEqual({ user: 'ann', isNew: false, isAvailable: true });
    expect(store.calls).not.toContain('touch');
  });

  it.each(Object.keys(CHANGES))('the empty session refuses changes: %s', async (what) => {
    const { client, store, log } = await start();
    const response = await client.post(`/shop/change/${what}`);
    expect([response.status, response.json(), response.setCookies]).toEqual([503, UNAVAILABLE, []]);
    expect(store.calls).toEqual(['create', 'load']);
    expect(log.lines.join('\n')).not.toContain(client.cookie('SESSION'));
    store.repair();
    expect((await client.get('/shop')).json()).toMatchObject({ user: 'ann' });
  });
});

describe.each(['load', 'update'] as const)('outages of which requests hear when they %s', (call) => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('have a line each, even after one that has ended', async () => {
    const { agent, store, log } = await startApp({ controllers: [PlainController] });
    const client = agent();
    await client.post('/login');
    let passed = 0;
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + passed);
    // A load, and a save only where those fail.
    const visit = async () => (await client.post(call === 'load' ? '/order' : '/login')).status;
    for (let outage = 1; outage <= 2; outage++) {
      store.break(call);
      expect([await visit(), await visit()]).toEqual([503, 503]);
      store.repair();
      passed += 6000;
      expect([await visit(), await visit()]).toEqual([201, 201]);
      expect(log.matching(/The session store failed/)).toHaveLength(outage);
    }
  });
});
