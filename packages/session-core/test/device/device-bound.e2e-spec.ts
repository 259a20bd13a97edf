import { Controller, Get, type INestApplication, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { launchBindingChromium, selfSignedCertificate } from '@nest-session/test-infrastructure/browser';
import type { BrowserContext, Page } from 'playwright-core';
import { Authenticated, DeviceBound, MapSessionModule, Session, SessionModule } from '../../src/index.js';

LeakGuard.install();

@Controller()
class Routes {
  @Get('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
    return 'signed in';
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }

  @Get('who')
  who(@Session() session: Session) {
    return { name: session.principalName ?? null, device: session.device ?? null };
  }

  @Authenticated()
  @Get('inside')
  inside() {
    return 'in';
  }

  @DeviceBound()
  @Get('money')
  money() {
    return 'money';
  }
}

let app: INestApplication;
let origin: string;
let context: BrowserContext;
let page: Page;
let results: string[];

beforeEach(async () => {
  const certificate = await selfSignedCertificate(['shop.test', 'idp.example']);
  app = await NestFactory.create(
    {
      module: class {},
      imports: [SessionModule.forRoot({ deviceBound: { mode: 'enforce' } }), MapSessionModule.forRoot()],
      controllers: [Routes],
    },
    { httpsOptions: certificate, logger: false },
  );
  await app.listen(0, '127.0.0.1');
  origin = (await app.getUrl()).replace('127.0.0.1', 'shop.test');
  context = await launchBindingChromium(certificate.cert);
  page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  results = [];
  cdp.on('Network.deviceBoundSessionEventOccurred' as never, (event: unknown) => {
    console.log(JSON.stringify(event));
    results.push(JSON.stringify(event));
  });
  await cdp.send('Network.enable');
  await cdp.send('Network.enableDeviceBoundSessions' as never, { enable: true } as never);
});

afterEach(async () => {
  await context.close();
  await app.close();
});

it('a browser registers, and renews its proof', async () => {
  page.on('response', (r) => console.log(r.status(), r.url(), JSON.stringify(r.headers())));
  await page.goto(`${origin}/sign-in`);
  for (let i = 0; i < 5; i++) {
    await page.goto(`${origin}/who`);
    console.log(await page.innerText('body'));
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  await context.clearCookies({ name: 'SESSION-device' });
  await page.goto(`${origin}/money`);
  console.log(await page.innerText('body'));
  console.log((await context.cookies()).map(({ name }) => name));
});
