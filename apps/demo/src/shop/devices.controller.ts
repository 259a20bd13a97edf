import { Controller, Delete, Get, HttpCode, NotFoundException, Param } from '@nestjs/common';
import { Authenticated, Session, type SessionInfo, Sessions } from '@nest-session/core';

const MOST_SHOWN = 20;

/** Lists the devices of an account. Each of its sessions is a device. */
@Authenticated()
@Controller('devices')
export class DevicesController {
  constructor(private readonly sessions: Sessions) {}

  @Get()
  async list(@Session() session: Session): Promise<(SessionInfo & { readonly isThisOne: boolean })[]> {
    const devices = [];
    for await (const device of this.sessions.ofPrincipal(session.principalName!)) {
      devices.push({ ...device, isThisOne: device.id === session.id });
      if (devices.length === MOST_SHOWN) break;
    }
    return devices;
  }

  @Delete(':id')
  @HttpCode(204)
  async end(@Session() session: Session, @Param('id') id: string): Promise<void> {
    if (id === session.id) return session.signOut(); // expires the cookie, too
    if (!(await this.sessions.end(id, { of: session.principalName })))
      throw new NotFoundException('That session has already ended');
  }

  @Delete()
  async endOthers(@Session() session: Session): Promise<{ readonly ended: number }> {
    return { ended: await this.sessions.endAll(session.principalName!, { except: session }) };
  }
}
