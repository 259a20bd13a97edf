import { once } from 'node:events';
import { WebSocket } from 'ws';

/** Milliseconds in which a server closes or answers what it wants to. */
const PATIENCE = 2000;

/** An open WebSocket of a phone. */
export class LiveSocket {
  private constructor(private readonly socket: WebSocket) {}

  static async open(url: string, headers: Record<string, string>): Promise<LiveSocket> {
    const socket = new WebSocket(url, { headers });
    socket.on('error', () => undefined); // it closes as well
    await once(socket, 'open');
    return new LiveSocket(socket);
  }

  /** Resolves to whether the server has closed the socket, for which it gets some time. */
  async isClosed(): Promise<boolean> {
    if (this.socket.readyState === WebSocket.CLOSED) return true;
    const closed = once(this.socket, 'close', { signal: AbortSignal.timeout(PATIENCE) });
    return closed.then(
      () => true,
      () => false,
    );
  }

  /** Resolves to whom the server takes the socket for, or null. */
  async owner(): Promise<string | null> {
    const answered = once(this.socket, 'message', { signal: AbortSignal.timeout(PATIENCE) });
    this.socket.send(JSON.stringify({ event: 'who' }));
    const [message] = (await answered) as [Buffer];
    return (JSON.parse(message.toString()) as { readonly data: string | null }).data;
  }

  close(): void {
    this.socket.terminate();
  }
}
