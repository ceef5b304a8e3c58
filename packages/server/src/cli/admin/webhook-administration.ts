import { CommandError, exitCodes, UsageError } from '@mediabucket/cli/command'
import type { Webhook, WebhookManager } from '@mediabucket/client'
import { signLinksOperation } from '../../access/signed-links.ts'
import { defaultSecretOverlap, isWebhookId } from '../../core/webhook-rules.ts'
import { urlSettings } from '../../service/bound-config.ts'
import type { Config } from '../../service/config.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import { isItemChangeKind } from '../../storage/catalog/items/item-changes.ts'
import type { BucketId } from '../../storage/catalog/records.ts'
import { createPoster } from '../../webhooks/guarded-post.ts'
import { WebhookOperations, webhookObject } from '../../webhooks/webhook-operations.ts'
import { type AdministrationContext, administer, type RemoteService } from './administration.ts'
import { unknownBucket } from './open-catalog.ts'

/** A webhook with the name of its bucket. */
export interface ListedWebhook extends Webhook {
  readonly bucket: string
}

/** The webhooks of one bucket, or on the data of all. */
interface Webhooks extends Omit<WebhookManager, 'list'> {
  list(): Promise<readonly ListedWebhook[]>
}

/** The webhooks of a bucket, as the command reaches them; without a name, those of the bucket of the token, or of all buckets of the service. */
export const withWebhooks = (
  context: AdministrationContext,
  bucket: string | undefined,
  work: (webhooks: Webhooks) => Promise<void>,
): Promise<void> =>
  administer(
    context,
    (remote) => work(webhooksOver(remote, bucket)),
    async (catalog) => {
      const found = bucket === undefined ? null : await catalog.findBucketNamed(bucket)
      if (bucket !== undefined && found === null) throw unknownBucket(bucket)
      await work(webhooksOf(catalog, context.config, found?.id ?? null))
    },
  )

function webhooksOver({ client, service }: RemoteService, bucket: string | undefined): Webhooks {
  const { webhooks } = bucket === undefined ? client : service.bucket(bucket)
  const listed = async (name: string) =>
    (await service.bucket(name).webhooks.list()).map((webhook) => ({ ...webhook, bucket: name }))
  return {
    ...webhooks,
    async list() {
      const name = bucket ?? (await service.whoami()).bucket
      if (name !== null) return await listed(name)
      const found: ListedWebhook[] = []
      for await (const each of service.buckets.list()) found.push(...(await listed(each.name)))
      return found
    },
  }
}

/** Those of one bucket, or of all. */
function webhooksOf(catalog: Catalog, config: Config, bucketId: BucketId | null): Webhooks {
  const operations = operationsOf(config, catalog)
  const requireBucket = async (id: string): Promise<BucketId> => {
    const webhook = isWebhookId(id) ? await catalog.findWebhook(id) : null
    if (webhook !== null && webhook.bucketId === (bucketId ?? webhook.bucketId)) return webhook.bucketId
    throw new CommandError(`there is no webhook "${id}". See: mediabucket webhook list`, exitCodes.notFound)
  }
  return {
    list: async () =>
      (await catalog.listWebhooks(bucketId ?? undefined)).map((webhook) => ({
        ...webhookObject(webhook),
        bucket: webhook.bucket,
      })),
    async create({ url, kinds = [], batch = 1 }) {
      if (bucketId === null) throw new UsageError('webhook create needs --bucket NAME')
      return await operations.create(bucketId, { url, kinds: kinds.filter(isItemChangeKind), batch })
    },
    async update(id, { url, kinds, batch, state }) {
      return await operations.set(await requireBucket(id), id, {
        ...(url !== undefined && { url }),
        ...(kinds !== undefined && { kinds: kinds.filter(isItemChangeKind) }),
        ...(batch !== undefined && { batch }),
        ...(state !== undefined && { state }),
      })
    },
    rotate: async (id, { overlapSeconds = defaultSecretOverlap } = {}) =>
      await operations.rotate(await requireBucket(id), id, overlapSeconds * 1_000),
    delete: async (id) => await operations.remove(await requireBucket(id), id),
    test: async (id) => await operations.test(await requireBucket(id), id),
    deliveries: async (id) => await operations.deliveries(await requireBucket(id), id),
    redeliver: async (id, number) => await operations.redeliver(await requireBucket(id), id, number),
  }
}

function operationsOf(config: Config, catalog: Catalog): WebhookOperations {
  const urls = urlSettings(config)
  const now = Date.now
  return new WebhookOperations({
    catalog,
    poster: createPoster({ allowed: config.webhookAllow }),
    urls,
    signLinks: signLinksOperation({ catalog, urls, now }),
    now,
  })
}
