import type { AddressInfo } from 'node:net';
import { createDemo } from './create-demo.js';

const app = await createDemo();
await app.listen(process.env.PORT ?? 3000);
const { port } = app.getHttpServer().address() as AddressInfo;
console.log(`Open http://localhost:${port}`);
