import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runClient } from '../cli/client-run.ts'
import { formBytes, sendForm } from '../harness/form.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { parseItem, readItem } from '../harness/wire.ts'

let server: SharedServer
let directory: string
beforeAll(async () => {
  server = await sharedServer()
  directory = await mkdtemp(join(tmpdir(), 'mediabucket-files-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
})

const ascii = (text: string) => Buffer.from(text, 'latin1')

/** A PNG of one pixel, without a valid checksum. */
function png() {
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, ascii(type), data, Buffer.alloc(4)])
  }
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
  const pixel = deflateSync(Buffer.from([0, 0]))
  return Buffer.concat([
    ascii('\x89PNG\r\n\x1a\n'),
    chunk('IHDR', header),
    chunk('IDAT', pixel),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A ZIP file by the program zip of files with these contents, in this order. */
async function zip(name: string, files: Record<string, string>, ...options: string[]) {
  const made = await mkdtemp(join(directory, 'zip-'))
  const entries = Object.entries(files)
  for (const [path, text] of entries) {
    await promisify(execFile)('mkdir', ['-p', join(made, path, '..')])
    await writeFile(join(made, path), text)
  }
  await promisify(execFile)('zip', ['-q', '-X', ...options, name, ...entries.map(([path]) => path)], {
    cwd: made,
  })
  return await readFile(join(made, name))
}

const docxParts = {
  '[Content_Types].xml':
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
  '_rels/.rels': '<?xml version="1.0"?><Relationships/>',
  'word/document.xml': '<?xml version="1.0"?><document/>',
}
const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const odt = 'application/vnd.oasis.opendocument.text'
const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
const xml = '<?xml version="1.0"?>\n'
const binary = 'application/octet-stream'
const mp4 = ascii('\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free')
const gif = ascii('GIF89a/*\x01\0\x80\0\0*/=1;alert(1)')
const jpeg = ascii('\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9')

interface Case {
  readonly bytes: string | Uint8Array | (() => Uint8Array | Promise<Uint8Array>)
  readonly name: string
  readonly declared: string
  readonly kept: string
  readonly extension: string | null
}

const cases: Record<string, Case> = {
  'a PNG': { bytes: png, name: 'a.png', declared: 'image/png', kept: 'image/png', extension: 'png' },
  'a PNG that says it is HTML': {
    bytes: png,
    name: 'a.html',
    declared: 'text/html',
    kept: 'image/png',
    extension: 'png',
  },
  'a JPEG': { bytes: jpeg, name: 'a.JPEG', declared: 'image/jpeg', kept: 'image/jpeg', extension: 'jpg' },
  'a JPEG without a name': { bytes: jpeg, name: '', declared: binary, kept: 'image/jpeg', extension: 'jpg' },
  'a PDF': {
    bytes: '%PDF-1.7\n%\xe2\n',
    name: 'a.pdf',
    declared: 'application/pdf',
    kept: 'application/pdf',
    extension: 'pdf',
  },
  'an MP4': { bytes: mp4, name: 'a.mov', declared: 'video/quicktime', kept: 'video/mp4', extension: 'mp4' },
  'a GIF that is a script': {
    bytes: gif,
    name: 'a.js',
    declared: 'text/javascript',
    kept: 'image/gif',
    extension: 'gif',
  },
  'a DOCX': {
    bytes: () => zip('a.docx', docxParts),
    name: 'a.docx',
    declared: docx,
    kept: docx,
    extension: 'docx',
  },
  'an ODT': {
    bytes: () => zip('a.odt', { mimetype: odt, 'content.xml': xml }, '-0'),
    name: 'a.odt',
    declared: odt,
    kept: odt,
    extension: 'odt',
  },
  'a ZIP': {
    bytes: () => zip('a.zip', { 'a.txt': 'a' }),
    name: 'a.zip',
    declared: 'application/zip',
    kept: 'application/zip',
    extension: 'zip',
  },
  'a ZIP whose name says more': {
    bytes: () => zip('a.zip', { 'a.txt': 'a' }),
    name: 'a.sb3',
    declared: 'application/x.scratch.sb3',
    kept: 'application/zip',
    extension: 'zip',
  },
  'a ZIP that says it is a picture': {
    bytes: () => zip('a.zip', { 'a.txt': 'a' }),
    name: 'a.png',
    declared: 'image/png',
    kept: 'application/zip',
    extension: 'zip',
  },
  'a CSV': { bytes: 'a,b\n1,2\n', name: 'a.csv', declared: 'text/csv', kept: 'text/csv', extension: 'csv' },
  'a CSV whose name is that of a text': {
    bytes: 'a,b\n',
    name: 'a.txt',
    declared: 'text/csv',
    kept: binary,
    extension: null,
  },
  'a CSV without a name': {
    bytes: 'a,b\n',
    name: '',
    declared: 'text/csv',
    kept: 'text/csv',
    extension: 'csv',
  },
  'a CSV that begins with letters of QuickTime': {
    bytes: 'id, free,used\n',
    name: 'a.csv',
    declared: 'text/csv',
    kept: 'text/csv',
    extension: 'csv',
  },
  'a PDF after a blank line': {
    bytes: '\r\n\r\n%PDF-1.4\n',
    name: 'a.pdf',
    declared: 'application/pdf',
    kept: 'application/pdf',
    extension: 'pdf',
  },
  'JSON with a charset': {
    bytes: '{}',
    name: 'a.json',
    declared: 'application/json; charset=utf-8',
    kept: 'application/json',
    extension: 'json',
  },
  'an SVG with a prolog': {
    bytes: xml + svg,
    name: 'a.svg',
    declared: 'image/svg+xml',
    kept: 'image/svg+xml',
    extension: 'svg',
  },
  'an SVG without a prolog': {
    bytes: svg,
    name: 'a.svg',
    declared: 'image/svg+xml',
    kept: 'image/svg+xml',
    extension: 'svg',
  },
  'an SVG that says it is a PNG': {
    bytes: xml + svg,
    name: 'a.png',
    declared: 'image/png',
    kept: 'application/xml',
    extension: 'xml',
  },
  HTML: {
    bytes: '<!doctype html><script>1</script>',
    name: 'a.html',
    declared: 'text/html',
    kept: 'text/html',
    extension: 'html',
  },
  'HTML that says it is a PNG': {
    bytes: '<html><script>1</script>',
    name: 'a.png',
    declared: 'image/png',
    kept: binary,
    extension: null,
  },
  'HTML that says it is a PDF': {
    bytes: '<html><script>1</script>',
    name: 'a.pdf',
    declared: 'application/pdf',
    kept: binary,
    extension: null,
  },
  'JSON sent as bytes': {
    bytes: '{}',
    name: 'a.json',
    declared: binary,
    kept: 'application/json',
    extension: 'json',
  },
  'bytes of no type': { bytes: '\0\0\0\0', name: 'a.bin', declared: binary, kept: binary, extension: null },
  'an empty file': { bytes: '', name: 'a.txt', declared: 'text/plain', kept: 'text/plain', extension: 'txt' },
}

describe('U7, L14 the stored type, and the extension of the URL, of', () => {
  test.each(Object.entries(cases))('%s', async (_, { bytes, name, declared, kept, extension }) => {
    const content = typeof bytes === 'function' ? await bytes() : bytes
    const sent = Buffer.from(typeof content === 'string' ? ascii(content) : content)
    // A form part is a file only with a filename.
    const form = name === '' ? [] : [await upload(server, sent, { name, type: declared })]
    const raw = await readItem(
      await server.request('/api/media', {
        method: 'POST',
        body: sent,
        headers: {
          'content-type': declared.includes('/') ? declared : binary,
          'content-disposition': `attachment; filename="${name}"`,
        },
      }),
    )
    for (const { content_type, url, id } of [...form, raw]) {
      expect({ content_type, url }).toEqual({
        content_type: kept,
        url: `${server.url}/media/${id}${extension === null ? '' : `.${extension}`}`,
      })
      const served = await fetch(url)
      expect(Buffer.from(await served.arrayBuffer())).toEqual(sent)
      expect(served.headers.get('content-type')?.split(';')[0]).toBe(kept)
      expect(served.headers.get('x-content-type-options')).toBe('nosniff')
      // Types that can contain scripts are never inline (B6).
      if (/html|svg|xml|javascript|octet/.test(kept))
        expect(served.headers.get('content-disposition')).toMatch(/^attachment\b/)
    }
  })
})

test('U7 a raw body without a name keeps the declared type, if no signature can show it', async () => {
  for (const [declared, stored, extension] of [
    ['application/json', 'application/json', '.json'],
    ['text/csv; charset=utf-8', 'text/csv', '.csv'],
    ['text/plain', 'text/plain', '.txt'],
    ['image/png', binary, ''],
    ['multipart/x-mixed-replace; boundary=a', binary, ''],
  ]) {
    const headers = { 'content-type': declared }
    const item = await readItem(await server.request('/api/media', { method: 'POST', body: '{}', headers }))
    expect([item.content_type, item.url]).toEqual([stored, `${server.url}/media/${item.id}${extension}`])
  }
})

test('U7 the default type of curl counts as undeclared', async () => {
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'content-disposition': 'attachment; filename="a.txt"',
  }
  const text = await readItem(await server.request('/api/media', { method: 'POST', body: 'a=1', headers }))
  expect([text.content_type, text.url]).toEqual(['text/plain', `${server.url}/media/${text.id}.txt`])
  const picture = await readItem(await server.request('/api/media', { method: 'POST', body: png(), headers }))
  expect(picture.content_type).toBe('image/png')
})

describe('U7, R11 a file for which no type is declared has the type of its extension', () => {
  const stored = ({ content_type, url, id }: { content_type: string; url: string; id: string }) => [
    content_type,
    url.slice(url.indexOf(id) + id.length),
  ]

  test('raw', async () => {
    const head = `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nConnection: close`
    const name = 'Content-Disposition: attachment; filename="notes.md"'
    const response = await sendRaw(server.url, `${head}\r\n${name}\r\nContent-Length: 3\r\n\r\n# a`)
    expect(stored(await readItem(responseOf(response)))).toEqual(['text/markdown', '.md'])
  })

  test('a part of a form', async () => {
    const head = 'Content-Disposition: form-data; name="file"; filename="a.csv"'
    expect(stored(await readItem(await sendForm(server, formBytes({ head, body: 'a,b' }))))).toEqual([
      'text/csv',
      '.csv',
    ])
  })

  test('tus', async () => {
    const metadata = `filename ${Buffer.from('a.json').toString('base64')}`
    const response = await server.request('/api/uploads', {
      method: 'POST',
      body: '{}',
      headers: {
        'tus-resumable': '1.0.0',
        'upload-length': '2',
        'upload-metadata': metadata,
        'content-type': 'application/offset+octet-stream',
      },
    })
    const item = await server.request(new URL(response.headers.get('content-location') ?? '').pathname)
    expect(stored(await readItem(item))).toEqual(['application/json', '.json'])
  })

  test('curl -F and the command line', async () => {
    const path = join(directory, 'notes.md')
    await writeFile(path, '# a')
    const curl = ['-sS', '-H', `Authorization: Bearer ${server.token}`, '-F', `file=@${path}`]
    const { stdout } = await promisify(execFile)('curl', [...curl, `${server.url}/api/media`])
    expect(stored(parseItem(stdout))).toEqual(['text/markdown', '.md'])
    expect((await runClient(server, 'upload', path)).stdout.trim()).toMatch(/\.md$/)
  })
})
