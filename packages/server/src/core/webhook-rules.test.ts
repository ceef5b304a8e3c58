import { expect, test } from 'vitest'
import {
  newWebhookSecret,
  parseRetryAfter,
  parseWebhookUrl,
  retryDelay,
  signedHeaders,
} from './webhook-rules.ts'

test('WH6 the delay doubles from 5 seconds to an hour, with jitter of a quarter', () => {
  const delays = [1, 2, 3, 9, 10, 11, 500].map((attempts) => retryDelay(attempts, 0.5, null) / 1_000)
  expect(delays).toEqual([5, 10, 20, 1_280, 2_560, 3_600, 3_600])
  expect([retryDelay(1, 0, null), retryDelay(1, 1, null)]).toEqual([3_750, 6_250])
})

test('WH6 the receiver can delay the next attempt up to a day, not hasten it', () => {
  expect(retryDelay(1, 0.5, 1_000)).toBe(5_000)
  expect(retryDelay(1, 0.5, 60_000)).toBe(60_000)
  expect(retryDelay(1, 0.5, 1e12)).toBe(86_400_000)
})

test('WH6 Retry-After has seconds or a date', () => {
  const now = Date.UTC(2026, 0, 1)
  const values = [
    '7',
    'Thu, 01 Jan 2026 00:00:09 GMT',
    'Wed, 31 Dec 2025 00:00:00 GMT',
    '-1',
    '1.5',
    'soon',
    undefined,
  ]
  expect(values.map((value) => parseRetryAfter(value, now))).toEqual([
    7_000,
    9_000,
    0,
    null,
    null,
    null,
    null,
  ])
})

test('WH2 URLs have their usual form', () => {
  expect(parseWebhookUrl('HTTPS://Example.org:443/a b?c')).toBe('https://example.org/a%20b?c')
  expect(parseWebhookUrl('http://0x7f.1/')).toBe('http://127.0.0.1/')
  const refused = [
    '',
    'example.org',
    'file:///etc/passwd',
    'https://a@example.org',
    'https://example.org/#',
    'https://',
  ]
  expect(refused.map(parseWebhookUrl)).toEqual(refused.map(() => null))
})

test('WH3 the signature is that of the example of Standard Webhooks', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const message = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1_614_265_330,
    body: '{"test": 2432232314}',
  }
  expect(signedHeaders(message, [secret])).toEqual({
    'webhook-id': message.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
  expect(newWebhookSecret()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
})
