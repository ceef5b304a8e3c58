import {
  type Client,
  createUploadQueue,
  type NamedFile,
  type UploadQueueOptions,
  type UploadQueueState,
} from '@mediabucket/client'
import { useEffect, useMemo, useRef } from 'react'
import { useHeld } from './use-held.ts'
import { useStore } from './use-store.ts'

export type UseUploadOptions = UploadQueueOptions

/** The uploads of a component. Without an id, the functions concern all uploads. */
export interface Uploads extends UploadQueueState {
  /** Adds files and starts to send them. Returns the ids of their uploads. */
  readonly add: (files: Iterable<File | NamedFile>) => readonly string[]
  readonly pause: (id?: string) => void
  readonly resume: (id?: string) => void
  /** Sends uploads that failed again. */
  readonly retry: (id?: string) => void
  /** Removes uploads that are not done, and what was sent of them. */
  readonly cancel: (id?: string) => void
  /** Removes uploads that are done from the list. Their items stay. */
  readonly clear: () => void
}

/**
 * Uploads files, and stops when the component is removed. Create the client outside of the component: another client has other uploads.
 * The options may change; they are read when an upload begins.
 */
export function useUpload(client: Client, options: UseUploadOptions = {}): Uploads {
  const latest = useRef(options)
  useEffect(() => {
    latest.current = options
  })
  const queue = useHeld(client, '', () => createUploadQueue(client, () => latest.current))
  useEffect(() => () => queue.close(), [queue])
  const state = useStore(queue)
  const methods = useMemo(
    () => ({
      add: (files: Iterable<File | NamedFile>) => queue.add(files),
      pause: (id?: string) => queue.pause(id),
      resume: (id?: string) => queue.resume(id),
      retry: (id?: string) => queue.retry(id),
      cancel: (id?: string) => queue.cancel(id),
      clear: () => queue.clear(),
    }),
    [queue],
  )
  return { ...state, ...methods }
}
