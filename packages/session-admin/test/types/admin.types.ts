// What applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import { type CanActivate, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { FastifyRequest } from 'fastify';
import { type AdminAccess, SessionAdminModule } from '@nest-session/admin';

@Injectable()
class AdminGuard implements CanActivate {
  canActivate() {
    return true;
  }
}

const guards = [AdminGuard, new AdminGuard()];

export function options(): unknown[] {
  return [
    SessionAdminModule.forRoot({ path: 'admin', guards }),
    SessionAdminModule.forRoot({ path: 'admin', guards: 'none', access: () => 'read' }),
    SessionAdminModule.forRoot({ path: 'admin', guards, access: ({ user }) => (user === 'ada' ? 'all' : 'none') }),
    SessionAdminModule.forRoot({ path: 'admin', guards, access: async (): Promise<AdminAccess> => ({ end: true }) }),
    SessionAdminModule.forRoot({ path: 'admin', guards, access: (request: Request) => (request.ip ? 'read' : 'none') }),
    SessionAdminModule.forRoot({ path: 'admin', guards, by: (request: FastifyRequest) => request.hostname }),
    SessionAdminModule.forRoot({ path: 'admin', guards, values: (name, value) => (name === 'a' ? value : undefined) }),
    // @ts-expect-error the guards are missing
    SessionAdminModule.forRoot({ path: 'admin' }),
    // @ts-expect-error no such word
    SessionAdminModule.forRoot({ path: 'admin', guards: 'open' }),
    // @ts-expect-error a class that is no guard
    SessionAdminModule.forRoot({ path: 'admin', guards: [Date] }),
    // @ts-expect-error no such access
    SessionAdminModule.forRoot({ path: 'admin', guards, access: () => 'write' }),
    // @ts-expect-error no such right
    SessionAdminModule.forRoot({ path: 'admin', guards, access: () => ({ delete: true }) }),
  ];
}
