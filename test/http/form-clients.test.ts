import { beforeAll, describe, expect, test } from 'vitest'
import { sendForm } from '../harness/form.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { readItem, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

interface Sent {
  readonly boundary: string
  /** The boundary as written in Content-Type. */
  readonly declared?: string
  /** The header lines of each part, in Latin-1, and its content. */
  readonly parts: readonly (readonly [head: string, content: string])[]
  readonly end?: string
  /** The stored names and contents. */
  readonly stored: readonly (readonly [filename: string | null, content: string])[]
}

const utf8 = (text: string) => Buffer.from(text).toString('latin1')
const field = ['Content-Disposition: form-data; name="a"', 'b'] as const

/** Forms in the format of these clients, taken from their sources or from their requests. */
const clients: Readonly<Record<string, Sent>> = {
  'Chromium, Firefox and Safari': {
    boundary: '----WebKitFormBoundary7MA4YWxkTrZu0gW',
    parts: [
      field,
      [
        `Content-Disposition: form-data; name="file"; filename="${utf8('naïve %22q%22.txt')}"\r\nContent-Type: text/plain`,
        'one',
      ],
    ],
    stored: [['naïve "q".txt', 'one']],
  },
  'Firefox before 2021': {
    boundary: '---------------------------9051914041544843365972754266',
    parts: [
      [
        'Content-Disposition: form-data; name="file"; filename="a\\"b.txt"\r\nContent-Type: text/plain',
        'one',
      ],
    ],
    stored: [['a"b.txt', 'one']],
  },
  'curl before 7.81': {
    boundary: '------------------------d74496d66958873e',
    parts: [
      field,
      [
        'Content-Disposition: form-data; name="file"; filename="a\\\\b\\".bin"\r\nContent-Type: application/octet-stream',
        'one',
      ],
    ],
    stored: [['b".bin', 'one']],
  },
  'undici (fetch in Node)': {
    boundary: '----formdata-undici-040493140541',
    parts: [
      field,
      [
        'Content-Disposition: form-data; name="file"; filename="blob"\r\nContent-Type: application/octet-stream',
        'one',
      ],
      ['Content-Disposition: form-data; name="file"; filename="e"\r\nContent-Type: text/csv', ''],
    ],
    stored: [
      ['blob', 'one'],
      ['e', ''],
    ],
  },
  'requests with urllib3 2': {
    boundary: '4d005b2333c33b3b9686d84becb542e4',
    parts: [
      field,
      [`Content-Disposition: form-data; name="file"; filename="${utf8('naïve %22q%22.txt')}"`, 'one'],
    ],
    stored: [['naïve "q".txt', 'one']],
  },
  'requests with urllib3 1': {
    boundary: '4c4b4126a2ddc5b486dc0c50dde8c2e1',
    parts: [['Content-Disposition: form-data; name="file"; filename*=utf-8\'\'na%C3%AFve.txt', 'one']],
    stored: [['naïve.txt', 'one']],
  },
  'form-data, axios and Postman': {
    boundary: '--------------------------015970436283518921837467',
    parts: [
      ['Content-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg', 'one'],
      ['Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', 'two'],
      ['Content-Disposition: form-data; name="file"\r\nContent-Type: image/jpeg', 'three'],
    ],
    stored: [
      ['a.jpg', 'one'],
      [null, 'two'],
      [null, 'three'],
    ],
  },
  'Go mime/multipart': {
    boundary: 'f5ff1c15fed59c1ae6ce8dcb2ba1be94ee56fe33f32f0a6f2bb8dba55c53',
    parts: [
      [
        'Content-Disposition: form-data; name="file"; filename="a\\"b\\\\c.txt"\r\nContent-Type: application/octet-stream',
        'one',
      ],
      ['Content-Disposition: form-data; name="a"', 'b'],
    ],
    stored: [['c.txt', 'one']],
  },
  'Go with a boundary of its own': {
    boundary: 'a/b c',
    declared: '"a/b c"',
    parts: [
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: application/octet-stream',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  'OkHttp 3': {
    boundary: '0d5f5dd8-5b26-4f0e-9a5d-3a2a4fd4e5a9',
    parts: [
      ['Content-Disposition: form-data; name="a"\r\nContent-Length: 1', 'b'],
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  Retrofit: {
    boundary: 'f7b0f8f6-4a2f-4a5f-8c3f-2f8f0f9d2e1c',
    parts: [
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Transfer-Encoding: binary\r\nContent-Type: text/plain\r\nContent-Length: 3',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  'Apache HttpClient': {
    boundary: 'rCs7Zl8Y-qbDCvYP1bQd4_kGEzcZx2Pq',
    parts: [
      [
        'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit',
        'b',
      ],
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  '.NET HttpClient': {
    boundary: '182e92b9-ebbb-4522-9205-a05c9e35191f',
    declared: '"182e92b9-ebbb-4522-9205-a05c9e35191f"',
    parts: [
      ['Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=a', 'b'],
      [
        'Content-Disposition: form-data; name=file; filename="=?utf-8?B?bmHDr3ZlLnR4dA==?="; filename*=utf-8\'\'na%C3%AFve.txt',
        'one',
      ],
    ],
    stored: [['naïve.txt', 'one']],
  },
  'PHP with Guzzle': {
    boundary: '7b1a3ecb1e0f5aa2d9f4d5a5c6a2e1a8a0b4c1d2',
    parts: [
      ['Content-Disposition: form-data; name="a"\r\nContent-Length: 1', 'b'],
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Length: 3\r\nContent-Type: text/plain',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  'Ruby multipart-post': {
    boundary: '-----------RubyMultipartPost-8b1e5c6d2f',
    parts: [
      [
        'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Length: 3\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: binary',
        'one',
      ],
    ],
    end: '\r\n\r\n',
    stored: [['a.txt', 'one']],
  },
  'Dart http': {
    boundary: 'dart-http-boundary-4sZ7+9_Ld.kqzT1uVxYb3nQp5mWc8eRf2gHj6aKo0iSd',
    parts: [
      ['content-disposition: form-data; name="a"', 'b'],
      [
        'content-type: application/octet-stream\r\ncontent-disposition: form-data; name="file"; filename="a.txt"',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
  Alamofire: {
    boundary: 'alamofire.boundary.4bd0f2f9a0c1e7d3',
    parts: [
      ['Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain', 'one'],
    ],
    stored: [['a.txt', 'one']],
  },
  "Python's email package": {
    boundary: '===============8617538490375298372==',
    declared: '"===============8617538490375298372=="',
    parts: [
      [
        'Content-Type: application/octet-stream\r\nMIME-Version: 1.0\r\nContent-Disposition: form-data; name="file";\r\n filename="a.txt"',
        'one',
      ],
    ],
    stored: [['a.txt', 'one']],
  },
}

describe('U1 the forms of common clients are read', () => {
  test.each(Object.entries(clients))(
    '%s',
    async (_, { boundary, declared = boundary, parts, end = '\r\n', stored }) => {
      const body = parts.map(([head, content]) => `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`).join('')
      const bytes = Buffer.from(`${body}--${boundary}--${end}`, 'latin1')
      const response = await sendForm(server, bytes, `multipart/form-data; boundary=${declared}`)
      expect(response.status).toBe(201)
      const items = stored.length > 1 ? await readStoredItems(response) : [await readItem(response)]
      const found = items.map(async ({ filename, url }) => [filename, await (await fetch(url)).text()])
      expect(await Promise.all(found)).toEqual(stored)
    },
  )
})
