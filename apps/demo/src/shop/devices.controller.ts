import { Controller, Delete, Get, HttpCode, NotFoundException, Param } from '@nestjs/common';
import { Authenticated, Session, type SessionInfo, SessionRepository, Sessions } from '@nest-session/core';

const MOST_SHOWN = 20;

/** Lists the devices of an account. Each of its sessions is a device. */
@Authenticated()
@Controller('devices')
export class DevicesController {
  constructor(
    private readonly sessions: Sessions,
    private readonly repository: SessionRepository,
  ) {}

  @Get()
  async list(@Session() session: Session): Promise<(SessionInfo & { isThisOne: boolean; isBound: boolean })[]> {
    const devices: SessionInfo[] = [];
    for await (const device of this.sessions.ofPrincipal(session.principalName!)) {
      devices.push(device);
      if (devices.length === MOST_SHOWN) break;
    }
    // Whether each is bound to its browser stands in its attributes, which the index does not know.
    const all = await this.repository.findByIds(devices.map(({ id }) => id));
    return devices.map((device, i) => ({
      ...device,
      isThisOne: device.id === session.id,
      isBound: all[i]?.device?.bound ?? false,
    }));
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
