import { Fault } from '../core/fault.ts'
import type { BatchThread } from './start-batch-thread.ts'

/**
 * A thread that starts with its first request, which waits for it: a thread takes a tenth of the time to start the service,
 * and memory. Where it cannot start, that request fails and the next one tries again. After a thread that has ended unexpectedly,
 * the next request starts another one; `start` receives the callback that reports the end.
 */
export function startOnDemand<Request, Output>(
  start: (onEnd: () => void) => Promise<BatchThread<Request, Output>>,
): Pick<BatchThread<Request, Output>, 'send' | 'close'> {
  let thread: BatchThread<Request, Output> | null = null
  let starting: Promise<BatchThread<Request, Output>> | null = null
  let isClosing = false

  async function startOnce(): Promise<BatchThread<Request, Output>> {
    try {
      thread = await start(() => {
        thread = null
      })
      return thread
    } finally {
      starting = null
    }
  }

  return {
    send(request, pending, transfer) {
      if (isClosing) return pending.reject(new Fault('shutting-down', 'The service is stopping.'))
      if (thread) return thread.send(request, pending, transfer)
      starting ??= startOnce()
      starting.then((started) => started.send(request, pending, transfer), pending.reject)
    },

    async close() {
      isClosing = true
      await starting?.catch(() => undefined)
      await thread?.close()
    },
  }
}
