import {
  type Client,
  createUploadQueue,
  type NamedFile,
  type QueuedUpload,
  type UploadQueueOptions,
} from '@mediabucket/client'
import { type ComputedRef, computed, type MaybeRefOrGetter, onScopeDispose, toValue } from 'vue'
import { followStore } from './store-refs.ts'

/** The uploads of a component. Without an id, the functions concern all uploads. */
export interface Uploads {
  readonly uploads: ComputedRef<readonly QueuedUpload[]>
  /** Bytes of all uploads that have not failed. */
  readonly sent: ComputedRef<number>
  readonly total: ComputedRef<number>
  /** Whether uploads are waiting or being sent. */
  readonly isSending: ComputedRef<boolean>
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

/** Uploads files, and stops when the component is removed. The options may change; they are read when an upload begins. */
export function useUpload(client: Client, options: MaybeRefOrGetter<UploadQueueOptions> = {}): Uploads {
  const queue = createUploadQueue(client, () => toValue(options))
  const { state, stop } = followStore(queue)
  onScopeDispose(() => {
    queue.close()
    stop()
  })
  return {
    uploads: computed(() => state.value.uploads),
    sent: computed(() => state.value.sent),
    total: computed(() => state.value.total),
    isSending: computed(() => state.value.isSending),
    add: (files) => queue.add(files),
    pause: (id) => queue.pause(id),
    resume: (id) => queue.resume(id),
    retry: (id) => queue.retry(id),
    cancel: (id) => queue.cancel(id),
    clear: () => queue.clear(),
  }
}
