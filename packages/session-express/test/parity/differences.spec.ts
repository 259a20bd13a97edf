import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import express from 'express';
import { closeApps, startApp } from '../support/express-session.app.js';
import { request, runIn, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

const PAGE = fileURLToPath(new URL('../../../../docs/from-express-session.md', import.meta.url));

const start = (session = {}, options = {}) => startApp({ controllers: [StepController], session, ...options });

/** By the row of the page, what shows that it is so. */
const ROWS: Record<string, () => Promise<void>> = {
  'What `JSON.stringify()` leaves out or refuses, such as a function or a bigint, is refused where it is assigned':
    async () => {
      const browser = (await start()).agent();
      await expect(runIn(browser, ({ session }) => (session.count = 1n))).rejects.toThrow('"count" holds what JSON');
      await runIn(browser, ({ session }) => void ++session.count);
      expect(await runIn(browser, ({ session }) => (session.count ?? null) as unknown)).toBeNull();
    },

  'For 60 s, a request that sets something by the token that a login has replaced is a 409 response': async () => {
    const browser = (await start()).agent();
    await runIn(browser, ({ session }) => void (session.cart = ['book']));
    const login = (gate: Gate) =>
      request(browser.fork(), async (req) => {
        await req.session.regenerate();
        req.session.user = 'ann';
        await gate.pass();
      });
    const gates = [new Gate(), new Gate()];
    const [first, second] = gates.map(login);
    // Both have the session by then.
    await Promise.all(gates.map((gate) => gate.reached()));
    gates[0]!.open();
    expect((await first)!.status).toBe(200);
    gates[1]!.open();
    expect([(await second)!.status, (await second)!.setCookies.length]).toEqual([200, 1]);
    // With the cookie of before.
    expect((await request(browser, ({ session }) => void (session.lang = 'de'))).status).toBe(409);
  },

  '`cookie.maxAge` or `cookie.expires` in the past ends the session; a new one is not stored': async () => {
    const browser = (await start()).agent();
    const expire = ({ session }: any) => {
      session.a = 1;
      session.cookie.expires = new Date(0);
    };
    expect((await request(browser, expire)).setCookies).toEqual([]);
    await runIn(browser, ({ session }) => void (session.a = 1));
    const kept = browser.fork();
    expect((await request(browser, expire)).setCookies).toEqual([expect.stringContaining('Max-Age=0')]);
    expect(await runIn(kept, ({ session }) => session.isNew as boolean)).toBe(true);
  },

  "`cookie.sameSite: 'none'` and `cookie.partitioned: true` need `cookie.secure: true`": async () => {
    await expect(start({ cookie: { sameSite: 'none' } })).rejects.toThrow("'none' needs `cookie.secure` true");
    await expect(start({ cookie: { partitioned: true } })).rejects.toThrow('needs `cookie.secure` true');
  },

  '`Set-Cookie` has `Max-Age` and no `Expires`': async () => {
    const { agent } = await start({ cookie: { maxAge: '1h' } });
    const { setCookies } = await request(agent(), ({ session }) => void (session.a = 1));
    expect(setCookies).toEqual([expect.stringContaining('Max-Age=3600')]);
    expect(setCookies.join()).not.toContain('Expires');
  },

  'other middleware sets as `req.session` before is replaced, and its `req.cookies` and `req.signedCookies` are not read':
    async () => {
      const { app, agent } = await start();
      const browser = agent();
      await runIn(browser, ({ session }) => void (session.a = 1));
      const cookies = browser.cookies;
      const outer = express();
      outer.use((req: any, _res, next) => {
        Object.assign(req, { cookies, signedCookies: cookies, session: { a: 'of another middleware' } });
        next();
      });
      outer.use(app.getHttpAdapter().getInstance() as express.Express);
      const server: Server = createServer(outer).listen(0, '127.0.0.1');
      try {
        await new Promise((resolve) => server.once('listening', resolve));
        const other = new HttpAgent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
        const read = ({ session }: any): unknown[] => [session.isNew, session.a ?? null];
        expect(await runIn(other, read)).toEqual([true, null]);
        expect(await runIn(browser, read)).toEqual([false, 1]);
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    },

  'The error of headers that are set after they were sent has the `code` of Node.js': async () => {
    let error: any;
    const { agent } = await start(
      {},
      {
        configure: (app: any) =>
          app.use('/late', (_req: unknown, res: any) => {
            res.end('done');
            try {
              res.setHeader('X-Late', '1');
            } catch (late) {
              error = late;
            }
          }),
      },
    );
    const { headers } = await agent().get('/late');
    expect(headers).not.toHaveProperty('x-late');
    expect(error).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' });
  },
};

describe('the page about express-session says', () => {
  it.each(Object.keys(ROWS))('%s', async (row) => {
    const page = await readFile(PAGE, 'utf8');
    const section = page.slice(page.indexOf('## What is different on purpose')).replaceAll(/\s+/g, ' ');
    expect(section).toContain(row);
    await ROWS[row]!();
  });
});
