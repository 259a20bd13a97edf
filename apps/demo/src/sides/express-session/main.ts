import { environment } from '../../environment.js';
import { createExpressSessionShop } from './create-express-session-shop.js';

const { hostname, port } = new URL(environment.expressSessionUrl!);
const app = await createExpressSessionShop({ logger: ['error', 'warn'] });
await app.listen(port, hostname);
