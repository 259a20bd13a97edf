import passport from 'passport';
import type { StepRequest } from './step.controller.js';

export interface PassportLoginOptions {
  /** The property in which Passport keeps the user. @default 'passport' */
  readonly key?: string;
  readonly keepSessionInfo?: boolean;
  /** What it keeps of the user. @default the user itself */
  readonly serialize?: (user: any) => unknown;
}

/** Signs a user in by Passport in a request, as its middleware and `req.logIn()` do. */
export function logInByPassport(
  request: StepRequest,
  user: unknown,
  options: PassportLoginOptions = {},
): Promise<void> {
  const { key = 'passport', keepSessionInfo = false, serialize = (each: unknown) => each } = options;
  const users: any = new passport.Passport();
  users._sm = new users._sm.constructor({ key }, users.serializeUser.bind(users));
  users.serializeUser((each: unknown, done: (error: unknown, kept: unknown) => void) => done(null, serialize(each)));
  const req: any = request.raw ?? request;
  return new Promise((resolve, reject) => {
    users.initialize()(req, undefined, () =>
      req.logIn(user, { keepSessionInfo }, (error: unknown) => (error ? reject(error as Error) : resolve())),
    );
  });
}
