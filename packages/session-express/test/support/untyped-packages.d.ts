// Packages without types of their own.
declare module 'connect-ensure-login' {
  export function ensureLoggedIn(login?: string): import('express').RequestHandler;
}
declare module 'lusca' {
  export function csrf(options?: object): import('express').RequestHandler;
}
declare module 'passport-oauth2' {
  export class Strategy {
    name: string;
    constructor(options: object, verify: (...args: any[]) => void);
  }
}
