/** Maven could not fetch what an application needs. `message`: what Maven prints. */
export class UnfetchedPackagesError extends Error {
  override readonly name = 'UnfetchedPackagesError';
}
