import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

// A process between two others: it passes on what it receives from one of them to the other after `delay` milliseconds.
// Arguments: the port to lead to, and the delay. It sends its own port to the process that started it.
const [port, delay] = process.argv.slice(2).map(Number) as [number, number];

const pass = (from: Socket, to: Socket) =>
  from.on('data', (data) => setTimeout(() => to.write(data), delay)).on('close', () => to.destroy());

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
  for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
  pass(client, upstream);
  pass(upstream, client);
});
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit());
