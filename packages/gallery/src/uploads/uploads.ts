import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { serviceUrl } from '../service/address.ts'
import { strings } from '../strings.ts'
import type { Engine } from './engine.ts'
import { hasLeftover } from './leftover.ts'
import { totalsOf, type UploadRow, type UploadTotals } from './upload-row.ts'

/** The files on their way. */
export interface Uploads {
  readonly rows: ReadonlySignal<readonly UploadRow[]>
  readonly totals: ReadonlySignal<UploadTotals>
  readonly allowed: boolean
  add(files: readonly File[]): Promise<void>
  /** Goes on with what an earlier session left, if there is any. */
  resumeLeftover(): Promise<void>
  /** The loaded uploader; null before the first upload. */
  readonly engine: ReadonlySignal<Engine | null>
  reconnect(): void
  cancelAll(): void
  close(): void
}

export interface UploadsOptions {
  readonly bucket: string
  readonly token: string
  readonly allowed: boolean
  readonly tell: (text: string, tone?: 'bad') => void
  /** Items were added: all that were under way are done, or some of many are. */
  readonly onAdded: (allDone: boolean) => void
  readonly onUnreachable: () => void
  readonly reached: (onWait: () => void) => Promise<void>
  readonly onRefused: () => void
  /** The bucket had no room for a file. */
  readonly onFull: () => void
}

export function createUploads(options: UploadsOptions): Uploads {
  const { bucket, token, allowed, tell } = options
  // What is kept for later is kept under this name: one bucket never sees the files of another.
  const uploaderId = `mediabucket-${bucket}`
  const rows = signal<readonly UploadRow[]>([])
  const totals = computed(() => totalsOf(rows.value))
  const engine = signal<Engine | null>(null)
  let loading: Promise<Engine> | null = null
  let closed = false

  async function load(): Promise<Engine> {
    await options.reached(() => tell(strings.uploads.held))
    const { createEngine } = await import('./engine.ts')
    const made = createEngine({
      id: uploaderId,
      token,
      endpoint: new URL('api/uploads', serviceUrl()).href,
      onChange(next) {
        if (closed) return
        const before = totals.value
        rows.value = next
        const { left, done } = totals.value
        if (done > before.done) options.onAdded(left === 0)
      },
      onFailed(status) {
        if (closed) return
        if (status === 401) options.onRefused()
        if (status === 507) options.onFull()
        if (status === null) options.onUnreachable()
      },
      onRestored(count) {
        if (count > 0) tell(strings.uploads.continued(count))
      },
    })
    engine.value = made
    return made
  }

  function loaded(): Promise<Engine> {
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }

  async function add(files: readonly File[]): Promise<void> {
    if (files.length === 0) return
    if (!allowed) return tell(strings.uploads.mayNot, 'bad')
    try {
      const made = await loaded()
      made.add(files)
    } catch {
      tell(strings.uploads.notLoaded, 'bad')
    }
  }

  return {
    rows,
    totals,
    allowed,
    engine,
    add,
    async resumeLeftover() {
      if (allowed && (await hasLeftover(uploaderId)) && !closed) await loaded().catch(() => undefined)
    },
    reconnect: () => engine.value?.reconnect(),
    cancelAll: () => engine.value?.cancelAll(),
    close() {
      closed = true
      engine.value?.close()
    },
  }
}
