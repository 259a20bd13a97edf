import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Queue } from 'bullmq';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
let mails: Queue;
beforeAll(async () => {
  store = await Store.open();
  mails = new Queue('mails', { connection: { host: '127.0.0.1', port: store.server.port } });
});
afterAll(async () => {
  await mails.close();
  await store.close();
});

it('the id of an event is a jobId of BullMQ, which adds one job for two attempts', async () => {
  const handled: string[] = [];
  @Injectable()
  class Mails {
    @OnSessionEvent(SessionEvent)
    async send({ id, type, attempt }: SessionEvent) {
      await mails.add(type, {}, { jobId: id });
      if (attempt === 1) throw new Error('the reply of the queue was lost');
      handled.push(id);
    }
  }
  const instance = await EventInstance.start({ redis: { url: store.server.url }, providers: [Mails] });
  try {
    const rotated = store.id();
    await store.save(await store.create({}), { newId: rotated });
    await store.scripts.delete(rotated);
    await eventually(() => expect(handled).toHaveLength(3));
    expect((await mails.getJobs()).map(({ id }) => id!).toSorted()).toEqual(handled.toSorted());
  } finally {
    await instance.stop();
  }
});
