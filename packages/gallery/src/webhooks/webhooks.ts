import type { Client, NewWebhook, Webhook, WebhookChanges, WebhookDelivery } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { type Connection, errorMessage } from '../service/connection.ts'

/** The webhooks of the bucket, and the deliveries of the one that is open. */
export interface Webhooks {
  /** Null before they are loaded. */
  readonly items: ReadonlySignal<readonly Webhook[] | null>
  /** Why they could not be loaded; null if they are loaded or loading. */
  readonly error: ReadonlySignal<string | null>
  /** The id of the webhook whose deliveries are shown. */
  readonly opened: ReadonlySignal<string | null>
  /** Latest first; null while they are loading. */
  readonly deliveries: ReadonlySignal<readonly WebhookDelivery[] | null>
  reload(): Promise<void>
  /** Shows the deliveries of a webhook, or hides them. */
  open(id: string | null): Promise<void>
  /** Resolves to the secret, which nothing shows again. */
  create(webhook: NewWebhook): Promise<string>
  rotate(id: string): Promise<string>
  update(id: string, changes: WebhookChanges): Promise<void>
  remove(id: string): Promise<void>
  test(id: string): Promise<WebhookDelivery>
  redeliver(id: string, number: number): Promise<WebhookDelivery>
}

export function createWebhooks(
  { webhooks: client }: Pick<Client, 'webhooks'>,
  connection: Pick<Connection, 'watch'>,
): Webhooks {
  const items = signal<readonly Webhook[] | null>(null)
  const error = signal<string | null>(null)
  const opened = signal<string | null>(null)
  const deliveries = signal<readonly WebhookDelivery[] | null>(null)

  async function reload(): Promise<void> {
    error.value = null
    try {
      items.value = await connection.watch(() => client.list())
      if (!items.value.some(({ id }) => id === opened.peek())) opened.value = null
    } catch (reason) {
      error.value = errorMessage(reason)
    }
  }

  async function open(id: string | null): Promise<void> {
    if (id !== opened.peek()) deliveries.value = null
    opened.value = id
    if (id === null) return
    try {
      const loaded = await connection.watch(() => client.deliveries(id))
      if (opened.peek() === id) deliveries.value = loaded
    } catch (reason) {
      error.value = errorMessage(reason)
    }
  }

  /** Shows what a request has changed, or what others have, if it fails because of that. */
  async function changed<T>(id: string | null, change: () => Promise<T>): Promise<T> {
    try {
      return await connection.watch(change)
    } finally {
      await reload()
      if (items.peek()?.some((webhook) => webhook.id === id)) await open(id)
    }
  }

  return {
    items,
    error,
    opened,
    deliveries,
    reload,
    open,
    create: async (webhook) => (await changed(null, () => client.create(webhook))).secret,
    rotate: async (id) => (await changed(null, () => client.rotate(id))).secret,
    update: async (id, changes) => void (await changed(null, () => client.update(id, changes))),
    remove: (id) => changed(null, () => client.delete(id)),
    test: (id) => changed(id, () => client.test(id)),
    redeliver: (id, number) => changed(id, () => client.redeliver(id, number)),
  }
}
