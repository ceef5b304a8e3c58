import type { HttpApp } from './create-http-app.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between two passes that close unused connections. */
const closeInterval = 50

/** Lets requests in progress finish within the shutdown timeout, and closes what the start opened in reverse order. */
export async function stopServer({ config, closers }: StartContext, app: HttpApp): Promise<void> {
  app.announceStop()
  const deadline = setTimeout(() => app.server.closeAllConnections(), config.shutdownTimeout)
  // Repeated, because a connection becomes unused when its request has been answered.
  const closing = setInterval(app.closeUnused, closeInterval)
  try {
    await closers.closeAll()
  } finally {
    clearInterval(closing)
    clearTimeout(deadline)
  }
}
