import { Controller, Inject, Injectable, Post, Req, UploadedFile, UseInterceptors } from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import multipart, { type MultipartFile } from '@fastify/multipart';
import { SessionContext } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

/** In a service, since the parsers of uploads call back from streams, where an asynchronous context may be lost. */
@Injectable()
class Uploads {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  add(name: string, size: number) {
    return this.context.session.updateAttribute<string[]>('files', (files = []) => [...files, `${name}: ${size}`]);
  }
}

@Controller('files')
class ExpressFilesController {
  constructor(@Inject(Uploads) private readonly uploads: Uploads) {}

  @Post()
  @UseInterceptors(FileInterceptor('file'))
  upload(@UploadedFile() file: { originalname: string; size: number }) {
    return this.uploads.add(file.originalname, file.size);
  }
}

@Controller('files')
class FastifyFilesController {
  constructor(@Inject(Uploads) private readonly uploads: Uploads) {}

  @Post()
  async upload(@Req() request: { file(): Promise<MultipartFile | undefined> }) {
    const file = await request.file();
    return this.uploads.add(file!.filename, (await file!.toBuffer()).length);
  }
}

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

/** Larger than the chunks of a socket, so that the parser sees several. */
const SIZE = 300_000;

async function uploaded(agent: HttpAgent, name: string): Promise<unknown> {
  const part = `--line\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\n\r\n`;
  const body = `${part}${'x'.repeat(SIZE)}\r\n--line--\r\n`;
  const headers = { 'content-type': 'multipart/form-data; boundary=line' };
  return (await agent.post('/files', body, { headers })).json();
}

async function expectUploads(app: App): Promise<void> {
  const agent = app.agent();
  expect(await uploaded(agent, 'a.txt')).toEqual([`a.txt: ${SIZE}`]);
  expect(await uploaded(agent, 'b.txt')).toEqual([`a.txt: ${SIZE}`, `b.txt: ${SIZE}`]);
  await app.stop();
}

it('an upload with multer reaches the session of the request, on Express', async () => {
  const options = { controllers: [ExpressFilesController], providers: [Uploads] };
  await expectUploads(await App.start({ redis: { url: server.url }, ...options }));
});

it('an upload with @fastify/multipart reaches the session of the request, on Fastify', async () => {
  const options = {
    controllers: [FastifyFilesController],
    providers: [Uploads],
    configure: async (nest: NestFastifyApplication) => void (await nest.register(multipart)),
  };
  await expectUploads(await App.start({ adapter: 'fastify', redis: { url: server.url }, ...options }));
});
