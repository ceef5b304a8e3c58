import type { FastifyInstance } from 'fastify'
import { Fault } from '../core/fault.ts'
import { METHODS } from '../core/node-http.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Headers besides `Allow` of the responses to OPTIONS and to methods that the path does not support. */
    optionsHeaders?: Readonly<Record<string, string>>
  }
}

/**
 * Records the methods of the routes that are added from now on. `addOtherMethods` ends that and adds the others: each
 * path responds to OPTIONS with 204, to other methods with 405, both with `Allow` (docs/interface.md P4).
 */
export function trackRouteMethods(app: FastifyInstance): { addOtherMethods(): void } {
  // The router responds with 404 to methods that it does not know, so add all that Node parses.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  const methodsByUrl = new Map<string, Set<string>>()
  const headersByUrl = new Map<string, Readonly<Record<string, string>>>()
  let isTracking = true
  app.addHook('onRoute', ({ url, method, config }) => {
    if (!isTracking || url === '*') return
    const methods = methodsByUrl.get(url) ?? new Set()
    for (const name of [method].flat()) methods.add(name)
    methodsByUrl.set(url, methods)
    if (config?.optionsHeaders) headersByUrl.set(url, config.optionsHeaders)
  })

  return {
    addOtherMethods() {
      isTracking = false
      for (const [url, methods] of methodsByUrl) {
        const allow = [...methods, 'OPTIONS'].sort().join(', ')
        const others = METHODS.filter((method) => !methods.has(method) && method !== 'CONNECT')
        app.route({
          method: others,
          url,
          config: { headers: headersByUrl.get(url) ?? {} },
          // In a hook, so that the body stays unread.
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
