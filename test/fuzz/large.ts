import { readFile } from 'node:fs/promises'
import { formBytes, formType } from '../harness/form.ts'
import { metadataOf } from '../harness/tus.ts'
import { headerValue } from './hostile.ts'
import type { Random } from './random.ts'
import type { Target } from './target.ts'

/** Bytes of an input. With the other headers, a request is below Node's limit of 16 kB for its head. */
const size = 15_000
/** Repeated, they are long lists, deep nests and unfinished tokens. */
const units = [
  ...[
    ',',
    ';',
    ' ',
    '"',
    '\\',
    '=',
    '%',
    '%2',
    '%E0%A4',
    '(',
    '[',
    '{"a":',
    '-',
    '.',
    '/',
    'a',
    '0',
    '\t',
    'é',
  ],
  ...[
    '0-1,',
    '0-0, ',
    'bytes=',
    '"x", ',
    'W/"x",',
    'q=0.1,',
    'text/html;q=0.5,',
    'a=b;',
    'a="',
    'filename="',
  ],
  ...[
    "filename*=UTF-8''%",
    'YQ==,',
    'x YQ==,',
    'sha256 ',
    '10.0.0.1, ',
    'for=x;',
    'Bearer ',
    'mbkt_',
    'a.',
    'eyJ',
    'a b ',
  ],
] as const satisfies readonly [string, ...string[]]

const headers = [
  ...[
    'Range',
    'If-Range',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'Accept',
    'Accept-Encoding',
    'Origin',
  ],
  ...['X-Forwarded-For', 'Forwarded', 'Cookie', 'Content-Type', 'Content-Disposition', 'Idempotency-Key'],
  ...['Authorization', 'Upload-Metadata', 'Upload-Checksum', 'Upload-Length', 'X-HTTP-Method-Override'],
] as const

const query = ['page', 'after', 'name', 'kind', 'from', 'limit', 'variant', 'download'] as const
const jsonRoutes = [
  'DELETE /api/media',
  'POST /api/trash/restore',
  'DELETE /api/trash',
  'POST /api/tokens',
] as const

/** One input of 15 kB for one parser, whole or with a valid beginning. */
function largeRequest(random: Random, token: string, id: string): Buffer {
  const [unit, begin] = [random.pick(units), random.oneIn(3) ? headerValue(random).slice(0, 200) : '']
  const text = (begin + unit.repeat(Math.ceil(size / unit.length))).slice(0, size)
  const latin1 = Buffer.from(text).toString('latin1').slice(0, size)
  const request = (line: string, head: readonly string[], body: string | Buffer = '') => {
    const lines = [
      `${line} HTTP/1.1`,
      'Host: x',
      'Connection: close',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]
    if (!head.some((each) => each.startsWith('Authorization'))) lines.push(`Authorization: Bearer ${token}`)
    return Buffer.concat([
      Buffer.from(`${[...lines, ...head].join('\r\n')}\r\n\r\n`, 'latin1'),
      Buffer.from(body),
    ])
  }
  const json = 'Content-Type: application/json'
  switch (random.below(7)) {
    case 0:
      return request(`GET /api/items?${random.pick(query)}=${encodeURIComponent(text).slice(0, size)}`, [])
    case 1:
      return request(`GET /media/${encodeURIComponent(text).slice(0, size)}`, [])
    case 2:
      return request(random.pick(jsonRoutes), [json], text)
    case 3:
      return request(
        `PATCH /api/media/${id}`,
        [json],
        JSON.stringify({ [random.pick(['filename', 'caption', 'x'])]: text }),
      )
    case 4: {
      const part = {
        head: `Content-Disposition: form-data; name="f"; filename="${latin1.replaceAll('"', '')}"`,
        body: 'x',
      }
      return request(
        'POST /api/media',
        [`Content-Type: ${formType}`],
        random.oneIn(2) ? formBytes(part) : Buffer.from(text),
      )
    }
    case 5:
      return request('POST /api/uploads', [
        'Tus-Resumable: 1.0.0',
        'Upload-Length: 0',
        `Upload-Metadata: ${random.oneIn(2) ? latin1 : metadataOf({ filename: text }).slice(0, size)}`,
      ])
    default: {
      const path = random.pick(['GET /api/media', `GET /media/${id}`, 'POST /api/media', 'POST /api/uploads'])
      return request(path, [`${random.pick(headers)}: ${latin1}`, 'Tus-Resumable: 1.0.0'])
    }
  }
}

/** Requests with the same input, of which the mean counts: the system counts in steps of 10 ms. */
const times = 10
/** Milliseconds of CPU of all threads for one input. */
const most = 50

/** Inputs of 15 kB for every parser cost little CPU. */
export async function fuzzLarge({ random, send, otherToken, instance }: Target): Promise<void> {
  const cpu = async () => {
    const fields = (await readFile(`/proc/${instance.server.process.pid}/stat`, 'utf8'))
      .split(') ')[1]
      ?.split(' ')
    return (Number(fields?.[11]) + Number(fields?.[12])) * 10
  }
  const stored = await send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${otherToken}\r\nContent-Length: 5\r\n\r\nhello`,
  )
  const id = /"id":"(\w+)"/.exec(stored?.body ?? '')?.[1] ?? 'none'
  const request = largeRequest(random, otherToken, id)
  const before = await cpu()
  for (let time = 0; time < times; time += 1) await send(request)
  const used = ((await cpu()) - before) / times
  if (used > most) throw new Error(`${used} ms of CPU for ${request.toString('latin1').slice(0, 400)}`)
}
