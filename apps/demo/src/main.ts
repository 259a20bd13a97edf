import type { AddressInfo } from 'node:net';
import { createDemo } from './create-demo.js';
import { LISTEN_ADDRESS, OWN_NAME } from './http/address.js';

const app = await createDemo();
await app.listen(process.env.PORT ?? 3000, LISTEN_ADDRESS);
const { port } = app.getHttpServer().address() as AddressInfo;
console.log(`Open http://${OWN_NAME}:${port}`);
