import type { INestApplication } from '@nestjs/common';

// Started by BenchServer with the name of a subject and the arguments of its applications.
const [subject, ...args] = process.argv.slice(2);
const { createApplication } = (await import(`./${subject}.applications.js`)) as {
  createApplication(...args: readonly string[]): Promise<INestApplication>;
};

const app = await createApplication(...args);
await app.listen(0, '127.0.0.1');

// Reports its processor time on request, and ends with the process that has started it.
process.on('message', () => process.send!(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.send!(Number(new URL(await app.getUrl()).port));
