import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Controller, ForbiddenException, HttpCode, Post, Req, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import {
  closeApps,
  type ExpressSessionAppOptions,
  type ExpressSessionApp,
  startApp,
} from '../support/express-session.app.js';
import { GatedStore } from '../support/gated.store.js';

LeakGuard.install();
afterEach(closeApps);

type Call = (request: any, response: any) => unknown;

/** What the handlers do with the session and the response. */
let call: Call;

@Controller()
class CallController {
  @Post('fill')
  fill(@Req() request: any) {
    request.session.user = { id: 1 };
    return 'filled';
  }

  /** Returns at once, and Nest responds. */
  @Post('passthrough')
  passthrough(@Req() request: any, @Res({ passthrough: true }) response: any): void {
    call(request, response);
  }

  /** The handler has the response to itself. */
  @Post('own')
  own(@Req() request: any, @Res() response: any): void {
    call(request, response);
  }

  @Post('awaiting')
  async awaiting(@Req() request: any) {
    await call(request, undefined);
    return 'value';
  }

  @Post('value')
  @HttpCode(202)
  value(@Req() request: any) {
    call(request, undefined);
    return 'value';
  }
}

const unhandled: unknown[] = [];
const record = (reason: unknown) => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', record);
});

afterEach(async () => {
  // Node.js reports a rejection a turn later.
  await new Promise(setImmediate);
  process.off('unhandledRejection', record);
  expect(unhandled).toEqual([]);
});

type Platform = NonNullable<ExpressSessionAppOptions['platform']>;

function start(platform: Platform, options: Partial<ExpressSessionAppOptions> = {}): Promise<ExpressSessionApp> {
  const express = { principal: (session: any) => session.user?.id as number | undefined };
  return startApp({ controllers: [CallController], platform, express, ...options });
}

async function agentOf(app: ExpressSessionApp, who: string): Promise<HttpAgent> {
  const agent = app.agent();
  if (who === 'user') await agent.post('/fill');
  return agent;
}

const errorsIn = ({ log }: ExpressSessionApp) => log.lines.filter((line) => line.startsWith('error'));

const METHODS = ['destroy', 'save', 'regenerate', 'reload'] as const;
const CASES = (['visitor', 'user'] as const).flatMap((who) => METHODS.map((method) => [who, method] as const));

describe.each<Platform>(['express', 'fastify'])('on %s, a callback', (platform) => {
  describe.each(CASES)('of a %s, of %s()', (who, method) => {
    beforeEach(() => {
      call = ({ session }, response) =>
        session[method]((error?: Error) => response.status(200).send({ called: method, error: error?.message }));
    });
    // There is no session to load again.
    const error = who === 'visitor' && method === 'reload' ? 'failed to load session' : undefined;

    it.each(['passthrough', 'own'])('may respond, from a handler with %s that has returned', async (route) => {
      const app = await start(platform);
      const response = await (await agentOf(app, who)).post(`/${route}`);
      expect([response.status, response.json()]).toEqual([200, { called: method, ...(error && { error }) }]);
      expect(errorsIn(app)).toEqual([]);
    });

    it('may respond also when the store takes its time', async () => {
      const store = new GatedStore();
      const app = await start(platform, { store: store.module });
      const agent = await agentOf(app, who);
      const responding = call;
      call = (request, response) => {
        const gates = [store.gate('load'), store.gate('write')];
        responding(request, response);
        // Nest would have responded by then.
        setImmediate(() => gates.forEach((gate) => gate.open()));
      };
      const response = await agent.post('/passthrough');
      expect([response.status, response.json()]).toEqual([200, { called: method, ...(error && { error }) }]);
      expect(errorsIn(app)).toEqual([]);
    });

    it('that throws makes the response a 500, and ends no process', async () => {
      const app = await start(platform);
      const agent = await agentOf(app, who);
      call = ({ session }) =>
        session[method](() => {
          throw new TypeError('a mistake');
        });
      for (const route of ['passthrough', 'own', 'value']) {
        const response = await (await agentOf(app, who)).post(`/${route}`);
        expect([route, response.status, response.json()]).toEqual([
          route,
          500,
          { statusCode: 500, message: 'Internal server error' },
        ]);
        // With the line of the mistake.
        expect(errorsIn(app)).toEqual([expect.stringMatching(/a mistake[^]*callbacks\.spec/)]);
        app.log.lines.length = 0;
      }
      expect((await agent.post('/fill')).status).toBe(201);
    });
  });

  it('that throws an HTTP exception reaches the exception filters', async () => {
    const app = await start(platform);
    call = ({ session }) =>
      session.destroy(() => {
        throw new ForbiddenException('not you');
      });
    for (const route of ['passthrough', 'own', 'value']) {
      const response = await app.agent().post(`/${route}`);
      expect([route, response.status, response.json()]).toMatchObject([route, 403, { message: 'not you' }]);
    }
    expect(errorsIn(app)).toEqual([]);
  });

  it.each(['passthrough', 'own'])('that throws behind its response leaves that as it is, with %s', async (route) => {
    const app = await start(platform);
    call = ({ session }, response) =>
      session.destroy(() => {
        response.status(200).send({ called: true });
        throw new TypeError('a mistake');
      });
    const response = await (await agentOf(app, 'user')).post(`/${route}`);
    expect([response.status, response.json()]).toEqual([200, { called: true }]);
    expect(errorsIn(app)).toEqual([
      expect.stringMatching(/^error A callback of req\.session threw an error .*a mistake[^]*callbacks\.spec/),
    ]);
  });

  it('whose promise rejects is waited for until it was called, and ends no process', async () => {
    const app = await start(platform);
    const agent = await agentOf(app, 'user');
    let isCalled = false;
    call = ({ session }) =>
      session.save(async () => {
        isCalled = true;
        await new Promise(setImmediate);
        throw new TypeError('a late mistake');
      });
    expect((await agent.post('/value')).text).toBe('value');
    expect(isCalled).toBe(true);
    await eventually(() =>
      expect(errorsIn(app)).toEqual([expect.stringMatching(/that no response tells any more.*a late mistake/)]),
    );
    expect((await agent.post('/own')).status).toBe(500);
  });

  it('of req.sessionStore that throws ends no process', async () => {
    const app = await start(platform);
    call = (request) =>
      (request.raw ?? request).sessionStore.destroy('unknown', () => {
        throw new TypeError('a mistake');
      });
    expect((await app.agent().post('/value')).status).toBe(202);
    await eventually(() =>
      expect(errorsIn(app)).toEqual([expect.stringMatching(/^error A callback of .*a mistake[^]*callbacks\.spec/)]),
    );
  });

  it('may call another method, whose callback responds', async () => {
    const app = await start(platform);
    const agent = await agentOf(app, 'user');
    call = (request, response) =>
      request.session.regenerate(() => {
        request.session.user = { id: 2 };
        request.session.save(() => response.status(200).send({ id: request.session.principalName }));
      });
    for (const route of ['passthrough', 'own']) expect((await agent.post(`/${route}`)).json()).toEqual({ id: '2' });
    expect(errorsIn(app)).toEqual([]);
  });

  it('may change the session while the response is on its way', async () => {
    const app = await start(platform);
    const agent = await agentOf(app, 'user');
    call = (request, response) => {
      request.session.regenerate(() => void (request.session.user = { id: 3 }));
      response.status(200).send({});
    };
    await agent.post('/own');
    call = ({ session }, response) => response.status(200).send({ id: session.principalName });
    expect((await agent.post('/own')).json()).toEqual({ id: '3' });
    expect(app.log.lines.filter((line) => !line.startsWith('log'))).toEqual([]);
  });
});

it('that throws makes the response a 500 at once, where the handler goes on', async () => {
  const app = await start('express');
  const agent = await agentOf(app, 'user');
  call = async ({ session, res }) => {
    session.save(() => {
      throw new TypeError('a mistake');
    });
    await once(res as ServerResponse, 'close');
  };
  expect((await agent.post('/awaiting')).status).toBe(500);
  expect(errorsIn(app)[0]).toMatch(
    /^error A callback of the session threw an error, so the response is a 500.*a mistake[^]*callbacks\.spec/,
  );
});
