import { randomUUID } from 'node:crypto'
import { signLinksOperation } from '../access/signed-links.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import { startDeliverer } from '../webhooks/deliverer.ts'
import { createPoster } from '../webhooks/guarded-post.ts'
import type { OpenData, StartContext } from './data.ts'

/** The only deliverer of a data directory, whose lock it has: its successor need not wait until its leases end. */
const ownerOfDirectory = 'service'

/** Delivers the changes of all buckets to their webhooks, in the one process of a service that sweeps. */
export function startWebhooks(
  { config, log, metrics, closers }: StartContext,
  { catalog }: Pick<OpenData, 'catalog'>,
  urls: UrlSettings,
): void {
  const deliverer = startDeliverer({
    catalog,
    poster: createPoster({ allowed: config.webhookAllow }),
    urls,
    signLinks: signLinksOperation({ catalog, urls, now: Date.now }),
    owner: config.databaseUrl === null ? ownerOfDirectory : randomUUID(),
    now: Date.now,
    random: Math.random,
    log,
    onDelivery: (isDelivered) =>
      metrics.webhookDeliveries.inc({ outcome: isDelivered ? 'delivered' : 'failed' }),
  })
  closers.add('webhooks', () => deliverer.close())
}
