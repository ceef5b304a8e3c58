import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Fault } from '../core/fault.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the path's answers to OPTIONS, and to methods it lacks, carry besides `Allow`. */
    optionsHeaders?: Readonly<Record<string, string>>
  }
}

/**
 * Makes every known path answer the methods it lacks with 405 and `Allow` (docs/interface.md P4), and OPTIONS with
 * 204 and `Allow`. Call it before the routes are added, and `close` after the last of them.
 */
export function trackRouteMethods(app: FastifyInstance): { close(): void } {
  // The router answers 404 to methods it does not know, so it learns all that Node's parser takes.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  const methodsOf = new Map<string, Set<string>>()
  const headersOf = new Map<string, Readonly<Record<string, string>>>()
  let open = true
  app.addHook('onRoute', ({ url, method, config }) => {
    if (!open || url === '*') return
    const methods = methodsOf.get(url) ?? new Set()
    for (const name of [method].flat()) methods.add(name)
    methodsOf.set(url, methods)
    if (config?.optionsHeaders) headersOf.set(url, config.optionsHeaders)
  })

  return {
    close() {
      open = false
      for (const [url, methods] of methodsOf) {
        const allow = [...methods, 'OPTIONS'].sort().join(', ')
        const others = METHODS.filter((method) => !methods.has(method) && method !== 'CONNECT')
        app.route({
          method: others,
          url,
          config: { headers: headersOf.get(url) ?? {} },
          // Before the body is looked at: whatever it holds, the method is what is wrong.
          onRequest: async ({ method }, reply) => {
            reply.header('allow', allow)
            if (method === 'OPTIONS') return reply.code(204).send()
            throw new Fault('method-not-allowed', `${method} is not allowed here; use one of ${allow}.`)
          },
          handler: () => undefined,
        })
      }
    },
  }
}
