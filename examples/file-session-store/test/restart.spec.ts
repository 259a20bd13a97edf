import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, type INestApplication, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Session, SessionModule } from '@nest-session/core';
import { freePort, HttpAgent, sessionOf } from '@nest-session/testing';
import { FileSessionModule } from '../src/file-session.module.js';

@Controller('visits')
class VisitsController {
  @Post()
  count(@Session() session: Session): Promise<number | undefined> {
    return session.updateAttribute<number>('visits', (visits = 0) => visits + 1);
  }
}

describe('an application with sessions in files', () => {
  let folder: string;
  let app: INestApplication;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sessions-'));
    app = await createApp();
  });

  afterEach(async () => {
    await app.close();
    await rm(folder, { recursive: true });
  });

  async function createApp(): Promise<INestApplication> {
    const testing = await Test.createTestingModule({
      imports: [SessionModule.forRoot({ timeout: '10m' }), FileSessionModule.forRoot({ folder })],
      controllers: [VisitsController],
    }).compile();
    return testing.createNestApplication();
  }

  it('finds its sessions after a restart', async () => {
    // A port that the system does not give to an outgoing connection meanwhile.
    const port = await freePort();
    await app.listen(port, '127.0.0.1');
    const agent = await HttpAgent.for(app);
    await agent.post('/visits');
    const before = await sessionOf(app, agent);
    await app.close();
    app = await createApp();
    await app.listen(port, '127.0.0.1');
    expect((await agent.post('/visits')).text).toBe('2');
    const after = await sessionOf(app, agent);
    expect([after?.id, after?.creationTime]).toEqual([before?.id, before?.creationTime]);
    expect(after?.maxInactiveInterval).toBe(600);
  });

  it('keeps the changes of concurrent requests', async () => {
    const agent = await HttpAgent.for(app);
    await agent.post('/visits');
    await Promise.all(Array.from({ length: 20 }, () => agent.post('/visits')));
    expect((await sessionOf(app, agent))?.getAttribute('visits')).toBe(21);
  });
});
