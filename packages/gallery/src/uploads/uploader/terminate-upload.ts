import type { SendOptions } from './send-options.ts'

/** Ends a resumable upload that will not continue, so that the server frees the reserved space. */
export type TerminateUpload = (url: string) => void

export const createTerminateUpload =
  ({
    loadResumable,
    endpoint,
    token,
  }: Pick<SendOptions, 'loadResumable' | 'endpoint' | 'token'>): TerminateUpload =>
  (url) =>
    void loadResumable().then(
      ({ terminate }) => terminate(url, { endpoint, token }),
      () => undefined,
    )
