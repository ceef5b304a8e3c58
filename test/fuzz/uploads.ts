import { createHash } from 'node:crypto'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { chunkType, itemOf, metadataOf } from '../harness/tus.ts'
import { hostileText } from './hostile.ts'
import type { Target } from './target.ts'

/** Raw and multipart uploads, complete or interrupted: each is stored completely or not at all. */
export async function fuzzUploads({ random, send, ledger, instance }: Target): Promise<void> {
  const isForm = random.oneIn(2)
  const sending = ledger.newSending(
    ...Array.from({ length: isForm ? 1 + random.below(3) : 1 }, () =>
      random.below(random.oneIn(5) ? 150_000 : 2_000),
    ),
  )
  const [first] = sending.files
  const body = isForm
    ? formBytes(...sending.files.map(({ name, bytes }) => filePart(name, bytes)))
    : Buffer.from(first?.bytes ?? [])
  const head = [
    'POST /api/media HTTP/1.1',
    'Host: x',
    'Connection: close',
    `Authorization: ${instance.authorization}`,
    isForm ? `Content-Type: ${formType}` : `Content-Disposition: attachment; filename="${first?.name}"`,
    `Content-Length: ${body.length}`,
  ]
  const request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
  const cut = random.oneIn(2) ? random.below(request.length + 1) : undefined
  const response = await send(request, cut)
  if (response === null) sending.state = 'unanswered'
  else if (response.status !== 201) sending.state = 'refused'
  else
    ledger.stored(
      sending,
      [...response.body.matchAll(/"id":"(\w+)"/g)].map(([, id = '']) => id),
    )
}

/** Random names and types in a separate bucket: no stored name contains a path or a control character. */
export async function fuzzNames({ random, send, otherToken }: Target): Promise<void> {
  const name = hostileText(random)
  const way = random.below(3)
  const form = formBytes({
    head: `Content-Disposition: form-data; name="f"; filename="${name.replace(/["\r\n]/g, '')}"\r\nContent-Type: ${hostileText(random).replace(/[\r\n]/g, '')}`,
    body: 'x',
  })
  const encoded = encodeURIComponent(name)
  const heads = [
    `POST /api/media HTTP/1.1\r\nContent-Type: ${formType}\r\nContent-Length: ${form.length}\r\n`,
    `POST /api/media HTTP/1.1\r\nContent-Disposition: attachment; filename*=UTF-8''${encoded}\r\nContent-Length: 1\r\n`,
    `POST /api/uploads HTTP/1.1\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 0\r\nUpload-Metadata: ${metadataOf({ filename: name })}\r\nContent-Length: 0\r\n`,
  ]
  const head = `${heads[way]}Host: x\r\nConnection: close\r\nAuthorization: Bearer ${otherToken}\r\n\r\n`
  const response = await send(
    Buffer.concat([Buffer.from(head, 'latin1'), way === 0 ? form : Buffer.from(way === 1 ? 'x' : '')]),
  )
  if (response?.status !== 201 || way === 2) return
  const item: { filename: string | null; id: string } = JSON.parse(
    Buffer.from(response.body, 'latin1').toString(),
  )
  // Path separators, control characters, and characters that change the direction of text.
  if (/[/\\\p{Cc}\p{Bidi_Control}]/u.test(item.filename ?? ''))
    throw new Error(`the name ${JSON.stringify(name)} is stored as ${JSON.stringify(item.filename)}`)
  await send(`GET /media/${item.id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
}

/** One resumable upload by a random sequence of requests, compared with a model of its offset. */
export async function fuzzTus({ random, send, ledger, instance }: Target): Promise<void> {
  const { tus, server, authorization } = instance
  const sending = ledger.newSending(random.below(20_000))
  const [file] = sending.files
  if (!file) return
  const { bytes, name } = file
  const deferred = random.oneIn(3)
  const url = await tus.create({
    'upload-metadata': metadataOf({ filename: name }),
    ...(deferred ? { 'upload-defer-length': '1' } : { 'upload-length': `${bytes.length}` }),
  })
  let [offset, declared, sent] = [0, !deferred, 0]
  const fail = (what: string) => {
    throw new Error(`${what}: upload of ${bytes.length} bytes, model at ${offset}`)
  }

  for (let step = 0; step < 40; step += 1) {
    const action = random.below(10)
    if (action < 2) {
      const response = await tus.head(url)
      if (response.status !== 200) fail(`HEAD responds with ${response.status}`)
      const reported = Number(response.headers.get('upload-offset'))
      // After a broken connection the offset is between the acknowledged and the sent bytes. The rest of them can still arrive.
      if (reported < offset || reported > Math.max(offset, sent)) fail(`HEAD returns ${reported}`)
      offset = reported
    } else if (action === 2) {
      const wrong = offset + 1 + random.below(10)
      if (sent === offset && (await tus.sendChunk(url, wrong, 'x')).status !== 409)
        fail('a wrong offset is taken')
    } else if (action === 3 && random.oneIn(4)) {
      const { status } = await tus.terminate(url)
      if (status !== 204) fail(`DELETE responds with ${status}`)
      if ((await tus.head(url)).status !== 404) fail('a deleted upload is there')
      sending.state = 'refused'
      return
    } else if (action === 4) {
      const end = Math.min(bytes.length, offset + random.below(5_000))
      const head = [
        `PATCH ${url} HTTP/1.1`,
        'Host: x',
        'Connection: close',
        `Authorization: ${authorization}`,
        'Tus-Resumable: 1.0.0',
        `Upload-Offset: ${offset}`,
        `Content-Type: ${chunkType}`,
        `Content-Length: ${end - offset}`,
      ]
      const request = Buffer.concat([
        Buffer.from(`${head.join('\r\n')}\r\n\r\n`),
        bytes.subarray(offset, end),
      ])
      await send(request, random.below(request.length + 1))
      sent = Math.max(sent, end)
    } else {
      const end = random.oneIn(3) ? bytes.length : Math.min(bytes.length, offset + random.below(5_000))
      const chunk = bytes.slice(offset, end)
      const isWrong = random.oneIn(6)
      const digest = createHash('sha1')
        .update(chunk)
        .update(isWrong ? 'x' : '')
        .digest('base64')
      const isDeclared = !declared && (end === bytes.length || random.oneIn(5))
      const response = await tus.sendChunk(url, offset, chunk, {
        ...(isWrong || random.oneIn(3) ? { 'upload-checksum': `sha1 ${digest}` } : {}),
        ...(isDeclared ? { 'upload-length': `${bytes.length}` } : {}),
      })
      const { status } = response
      await response.arrayBuffer()
      if (sent > offset && status === 409) continue
      if (isDeclared && status !== 400) declared = true
      if (isWrong && status === 460) continue
      // An interrupted request declared the length.
      if (isDeclared && status === 400) continue
      if (status !== 204 || Number(response.headers.get('upload-offset')) !== end)
        fail(`PATCH responds with ${status}`)
      offset = end
      sent = Math.max(sent, end)
      if (declared && offset === bytes.length) {
        const item = await itemOf(server, response)
        ledger.stored(sending, [item.id])
        return
      }
      if (response.headers.get('content-location') !== null) fail('an unfinished upload names an item')
    }
  }
}
