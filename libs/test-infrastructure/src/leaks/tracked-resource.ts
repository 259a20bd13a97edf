/** The properties of Node.js handles that describe them; each kind of handle has some. */
export interface Resource {
  /** Of a handle that is closed: undefined. */
  hasRef?(): boolean | undefined;
  getsockname?(out: Endpoint): number;
  getpeername?(out: Endpoint): number;
  pid?: number;
  /** Of a connection that an agent of HTTP uses again: what was reported first. */
  handle?: unknown;
  /** Of a timer: its delay in milliseconds. */
  _idleTimeout?: number;
  /** Of a timer: it has run or was cleared. async_hooks reports that a little later. */
  _destroyed?: boolean;
}

interface Endpoint {
  address?: string;
  port?: number;
}

type Describe = (resource: Resource) => string;

/** The kinds of resources by their names in async_hooks. */
const TRACKED: Readonly<Record<string, Describe>> = {
  TCPWRAP: (handle) => `connection ${endpoint(handle, 'getsockname')} - ${endpoint(handle, 'getpeername')}`,
  TCPSERVERWRAP: (handle) => `server on ${endpoint(handle, 'getsockname')}`,
  PIPEWRAP: () => 'pipe or connection to a Unix socket',
  PIPESERVERWRAP: () => 'server on a Unix socket',
  UDPWRAP: (handle) => `UDP socket on ${endpoint(handle, 'getsockname')}`,
  PROCESSWRAP: (handle) => `child process ${handle.pid ?? ''}`,
  WORKER: () => 'worker thread',
  FSEVENTWRAP: () => 'file watcher',
  STATWATCHER: () => 'file watcher',
  Timeout: (timer) => `timer of ${timer._idleTimeout ?? '?'} ms`,
};

/** Whether it is a resource, seen for the first time, of a type of async_hooks that can keep a process from ending. */
export function isTracked(type: string, resource: Resource): boolean {
  return Object.hasOwn(TRACKED, type) && resource.handle === undefined;
}

/**
 * Whether it is a timer that has run or was cleared, or was collected. What else has ended looks as if unreferenced.
 */
export function isEnded(resource: Resource | undefined): boolean {
  return resource === undefined || resource._destroyed === true;
}

/** Whether it keeps the process from ending now. */
export function isReferenced(resource: Resource): boolean {
  return resource._destroyed !== true && (!resource.hasRef || resource.hasRef() === true);
}

/** Whether it is a timer that has neither run nor been cleared. */
export function isPendingTimer(type: string, resource: Resource): boolean {
  return type === 'Timeout' && resource._destroyed !== true;
}

export function describeResource(type: string, resource: Resource): string {
  return TRACKED[type]?.(resource) ?? type;
}

function endpoint(handle: Resource, method: 'getsockname' | 'getpeername'): string {
  const out: Endpoint = {};
  handle[method]?.(out);
  return out.port === undefined ? '(none)' : `${out.address}:${out.port}`;
}
