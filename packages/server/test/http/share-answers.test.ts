import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { AnswerListing } from '../../src/http/listing-answer.ts'
import { shareAnswers } from '../../src/http/share-answers.ts'

function request(url: string, headers: Record<string, string>): IncomingMessage {
  const message = new IncomingMessage(new Socket())
  message.url = url
  Object.assign(message.headers, headers)
  return message
}

/** Answers with a status that counts the answers given; knows which requests it was asked for. */
function counting() {
  const asked: IncomingMessage[] = []
  const answer: AnswerListing = async (message) => {
    asked.push(message)
    return { status: 200, headers: { etag: `"${asked.length}"` }, body: null }
  }
  return { asked, share: shareAnswers(answer, () => ({})) }
}

const plain = { authorization: 'Bearer one' }

test('requests of one turn that are alike share one answer', async () => {
  const { asked, share } = counting()
  await Promise.all([1, 2, 3].map(() => share(request('/api/media', plain))))
  expect(asked).toHaveLength(1)
})

test.each([
  ['A6 the token', '/api/media', { authorization: 'Bearer two' }],
  ['L11 the page', '/api/media?page=2', plain],
  ['L16 the coding', '/api/media', { ...plain, 'accept-encoding': 'gzip' }],
  ['L16 the tag', '/api/media', { ...plain, 'if-none-match': '"x"' }],
  ['C1 the origin', '/api/media', { ...plain, origin: 'https://app.example.org' }],
])('%s tells requests of one turn apart', async (_what, url, headers) => {
  const { asked, share } = counting()
  const [one, other] = await Promise.all([share(request('/api/media', plain)), share(request(url, headers))])
  expect(asked).toHaveLength(2)
  expect(one).not.toBe(other)
})

test('A7, L4 an answer is begun after all who share it have come, and is shared with nobody who comes later', async () => {
  const { asked, share } = counting()
  const first = share(request('/api/media', plain))
  await Promise.resolve()
  expect(asked).toHaveLength(0)
  const second = share(request('/api/media', plain))
  expect(await first).toBe(await second)
  expect(await share(request('/api/media', plain))).not.toBe(await first)
  expect(asked).toHaveLength(2)
})
