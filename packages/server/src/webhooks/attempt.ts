import { signedHeaders } from '../core/webhook-rules.ts'
import type { WebhookDelivery } from '../storage/catalog/feed/webhook-deliveries.ts'
import type { WebhookReader } from '../storage/catalog/feed/webhooks.ts'
import type { Post, PostResult } from './guarded-post.ts'
import type { Message } from './messages.ts'

/** Characters of a response that are stored. */
const excerptLength = 500

export interface Attempt {
  readonly result: PostResult
  readonly delivery: WebhookDelivery
}

/** Sends a message to the receiver of a webhook. Never rejects. */
export async function attempt(
  { url, secrets }: Pick<WebhookReader, 'url' | 'secrets'>,
  { id, type, body, changes, range }: Message,
  {
    post,
    signal,
    now,
    isManual,
  }: {
    readonly post: Post
    readonly signal: AbortSignal
    readonly now: () => number
    readonly isManual: boolean
  },
): Promise<Attempt> {
  const time = now()
  const headers = signedHeaders({ id, timestamp: Math.floor(time / 1_000), body }, secrets)
  const result = await post(url, headers, body, signal)
  const { status, reason, duration } = result
  const response = excerptOf(result.response)
  const delivery = { messageId: id, type, time, duration, changes, range, status, reason, response, isManual }
  return { result, delivery }
}

/** Text that every engine stores. */
const excerptOf = (response: string): string =>
  response.toWellFormed().replaceAll('\0', '\uFFFD').slice(0, excerptLength).toWellFormed()
