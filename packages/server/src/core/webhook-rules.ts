import { createHmac, randomBytes } from 'node:crypto'
import { base32Alphabet, randomBase32 } from './ids.ts'

/** What a webhook may be: `on` delivers. The others do not: `off` was switched off by somebody, `gone` by a 410, `failed` after three days of failed attempts. */
export const webhookStates = ['on', 'off', 'gone', 'failed'] as const
export type WebhookState = (typeof webhookStates)[number]

/** Webhooks of a bucket. */
export const maxWebhooks = 10

/** Changes in one delivery. */
export const maxBatch = 100

/** Deliveries of a webhook that are kept, the last ones. */
export const keptDeliveries = 100

/** Characters of a URL. */
export const maxWebhookUrl = 2_048

/** Seconds for which the replaced secret signs too: by default, and at most. */
export const defaultSecretOverlap = 86_400
export const maxSecretOverlap = 604_800

declare const brand: unique symbol
export type WebhookId = string & { readonly [brand]: 'WebhookId' }

const idLength = 12
const idShape = new RegExp(`^wh_[${base32Alphabet}]{${idLength}}$`)

export const newWebhookId = (): WebhookId => `wh_${randomBase32(idLength)}` as WebhookId

export const isWebhookId = (text: string): text is WebhookId => idShape.test(text)

/** What a URL of a webhook must be, for messages. */
export const webhookUrlRule = `A URL with http or https, of at most ${maxWebhookUrl} characters, without user name, password and fragment.`

/** The URL in its usual form; null if it does not follow `webhookUrlRule`. */
export function parseWebhookUrl(text: string): string | null {
  if (text.length > maxWebhookUrl || !URL.canParse(text)) return null
  const { protocol, username, password, hash, href } = new URL(text)
  const isAccepted =
    /^https?:$/.test(protocol) && username === '' && password === '' && hash === '' && !text.includes('#')
  return isAccepted && href.length <= maxWebhookUrl ? href : null
}

/** For people and for the audit log: the rest of a URL may be a secret. */
export const originOf = (url: string): string => new URL(url).origin

const secretPrefix = 'whsec_'

/** A secret of Standard Webhooks with 256 random bits. */
export const newWebhookSecret = (): string => secretPrefix + randomBytes(32).toString('base64')

/** What one delivery says, as Standard Webhooks signs it. */
export interface SignedMessage {
  /** The same for each attempt, so that receivers ignore repetitions. */
  readonly id: string
  /** The time of the attempt. Seconds since 1970. */
  readonly timestamp: number
  readonly body: string
}

/** The headers of a delivery (https://www.standardwebhooks.com/). Each secret has a signature. */
export function signedHeaders(
  { id, timestamp, body }: SignedMessage,
  secrets: readonly string[],
): Readonly<Record<string, string>> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': signatures.join(' '),
  }
}

/** A webhook is switched off when its deliveries have failed for this long. Milliseconds. */
export const longestFailure = 3 * 86_400_000

const firstDelay = 5_000
const longestDelay = 3_600_000

/**
 * Milliseconds from a failed attempt to the next one. `attempts` is the number of those that have failed, `random` is from 0 to 1,
 * `retryAfter` what the receiver asks for, in milliseconds.
 */
export function retryDelay(attempts: number, random: number, retryAfter: number | null): number {
  const delay = Math.min(longestDelay, firstDelay * 2 ** Math.min(attempts - 1, 20))
  return Math.max(Math.round(delay * (0.75 + random / 2)), Math.min(retryAfter ?? 0, longestRetryAfter))
}

/** No receiver delays the next attempt by more, because a webhook that fails for three days is switched off. */
const longestRetryAfter = 86_400_000

/** Milliseconds; null if the header is neither seconds nor a date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000
  const time = /^[A-Z][a-z]{2}, /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? null : Math.max(0, time - now)
}
