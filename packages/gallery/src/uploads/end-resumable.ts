import type { LaneOptions } from './lane-options.ts'

/** Ends a resumable upload that will not continue, so that the service frees what it reserved. */
export type EndResumable = (url: string) => void

export const createEndResumable =
  ({
    loadResumable,
    endpoint,
    token,
  }: Pick<LaneOptions, 'loadResumable' | 'endpoint' | 'token'>): EndResumable =>
  (url) =>
    void loadResumable().then(
      ({ terminate }) => terminate(url, { endpoint, token }),
      () => undefined,
    )
