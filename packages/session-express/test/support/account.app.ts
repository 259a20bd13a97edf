import { Controller, Get, type INestApplication, Post, Req, Res } from '@nestjs/common';
import flash from 'connect-flash';
import { csrfSync } from 'csrf-sync';
import passport from 'passport';
import { Strategy } from 'passport-local';

/** An application as it is before and after the migration: no line of it knows which library keeps its sessions. */
@Controller()
export class AccountController {
  @Get('token')
  token(@Req() req: any) {
    return { token: req.csrfToken() as string };
  }

  @Post('cart/:item')
  add(@Req() req: any) {
    req.session.cart ??= [];
    req.session.cart.push(req.params.item);
    req.flash('info', `added ${req.params.item}`);
    return { cart: req.session.cart as unknown };
  }

  @Get('me')
  me(@Req() req: any) {
    return {
      user: req.user?.id ?? null,
      cart: req.session.cart ?? [],
      views: (req.session.views = (req.session.views ?? 0) + 1),
    };
  }

  @Get('messages')
  messages(@Req() req: any) {
    return { info: req.flash('info') as unknown };
  }

  @Post('logout')
  logout(@Req() req: any, @Res() res: any) {
    req.logout((error?: Error) => {
      if (error) return res.status(500).json(error.message);
      req.session.destroy(() => res.json({ session: req.session ?? null }));
    });
  }
}

export function configureAccountApp(app: INestApplication): void {
  const users = new passport.Passport();
  users.use(new Strategy((name, password, done) => done(null, password === 'secret' ? { id: name } : false)));
  users.serializeUser((user, done) => done(null, (user as { id: string }).id));
  users.deserializeUser((id: string, done) => done(null, { id } as never));
  app.use(users.initialize());
  app.use(users.session());
  app.use(flash());
  // In main.ts, the body is parsed only after this middleware.
  app.use('/login', (req: any, _res: unknown, next: () => void) => ((req.body ??= req.query), next()));
  app.use(
    '/login',
    users.authenticate('local', { keepSessionInfo: true, successRedirect: '/me', failureRedirect: '/' }),
  );
  app.use(csrfSync().csrfSynchronisedProtection);
}

export const LOGIN = '/login?username=ann&password=secret';
