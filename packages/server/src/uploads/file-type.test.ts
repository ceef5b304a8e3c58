import { randomBytes } from 'node:crypto'
import { FileTypeParser, fileTypeFromBuffer } from 'file-type'
import { afterEach, expect, test, vi } from 'vitest'
import { newItemId } from '../core/ids.ts'
import { headLength } from '../storage/blobs/blobs.ts'
import type { ReceivedBlob } from '../storage/blobs/received-file.ts'
import { createSignatureTest, SignatureParser, sniffType } from './file-type.ts'

afterEach(() => {
  vi.useRealTimers()
})

const received = (bytes: Uint8Array): ReceivedBlob => ({
  id: newItemId(),
  handle: 'test',
  size: bytes.byteLength,
  sha256: new Uint8Array(32),
  head: bytes.subarray(0, headLength),
})

const sniff = (bytes: Uint8Array) => {
  const blob = new Blob([Uint8Array.from(bytes)])
  return sniffType({ peek: async () => blob }, received(bytes))
}

/** A ZIP file of stored entries and an empty central directory. */
function zip(entries: readonly (readonly [name: string, content: Uint8Array])[]): Buffer {
  const parts = entries.flatMap(([name, content]) => {
    const header = Buffer.alloc(30)
    header.write('PK\x03\x04', 'latin1')
    header.writeUInt32LE(content.byteLength, 18)
    header.writeUInt32LE(content.byteLength, 22)
    header.writeUInt16LE(name.length, 26)
    return [header, Buffer.from(name), content]
  })
  return Buffer.concat([...parts, Buffer.from('PK\x05\x06', 'latin1'), Buffer.alloc(18)])
}

const long = randomBytes(3 * headLength)
const wordTypes = Buffer.from(
  '<Types><Override ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
)

test('U7: a type detected in the head is used without reading the whole file', async () => {
  const peek = vi.fn()
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), long])
  expect(await sniffType({ peek }, received(jpeg))).toMatchObject({ mime: 'image/jpeg', ext: 'jpg' })
  const short = Buffer.from('just text')
  expect(await sniffType({ peek }, received(short))).toBeNull()
  expect(peek).not.toHaveBeenCalled()
})

test('U7: a document in a ZIP is detected if its entries lie beyond the head', async () => {
  const document = zip([
    ['word/media/image.bin', long],
    ['[Content_Types].xml', wordTypes],
  ])
  expect(await sniff(document)).toMatchObject({ ext: 'docx' })
})

test('U7: an archive whose head looks like a document is an archive', async () => {
  expect(await sniff(zip([['word/notes.bin', long]]))).toMatchObject({ mime: 'application/zip' })
})

test('U7: the bytes after a tag that is longer than the head determine the type', async () => {
  const tag = Buffer.from(['I', 'D', '3', '\x04', '\0', '\0', '\0', '\0', '\x60', '\0'].join(''), 'latin1')
  const flac = Buffer.concat([tag, Buffer.alloc(0x60 << 7), Buffer.from('fLaC\0\0\0\x22'), long])
  expect(await sniff(flac)).toMatchObject({ mime: 'audio/flac' })
})

test('U7: bytes without a signature have no type at any size', async () => {
  for (const size of [0, 1, 2, headLength, headLength + 1, 100_000])
    expect(await sniff(Buffer.alloc(size, 'text '))).toBeNull()
})

test('any bytes after any signature, at any size, cause no error', async () => {
  const signatures = [
    'PK\x03\x04',
    'PK\x03\x04\x14\0\x08\0\x08\0',
    'ID3\x04\0\0\x7f\x7f\x7f\x7f',
    '\x1f\x8b\x08\0\0\0\0\0\0\0',
    '\x89PNG\r\n\x1a\n\0\0\0\rIHDR',
    '\x1aE\xdf\xa3',
    '\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9',
    'II*\0\xff\xff\xff\x7f',
    'MM\0*\x7f\xff\xff\xff',
    'OggS',
    '\0\0\0\x20ftyp',
    'RIFF\xff\xff\xff\xffWEBP',
    '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
    '\xef\xbb\xbf',
    '<?xml version="1.0"?>',
    '%PDF-1.7',
  ]
  for (const signature of signatures) {
    for (const size of [0, 1, 7, 40, 600, headLength, 20_000]) {
      const bytes = Buffer.concat([Buffer.from(signature, 'latin1'), randomBytes(size)])
      const type = await sniff(bytes)
      expect(type === null || typeof type.mime === 'string').toBe(true)
      await sniff(Buffer.concat([Buffer.from(signature, 'latin1'), Buffer.alloc(size, 0xff)]))
      await sniff(Buffer.concat(Array(50).fill(Buffer.from(signature, 'latin1'))))
    }
  }
})

test('an archive with 50,000 entries is sniffed in bounded time', async () => {
  const entry = zip([['a', new Uint8Array(0)]]).subarray(0, 31)
  const type = await sniff(Buffer.concat(Array(50_000).fill(entry)))
  expect(type).toMatchObject({ mime: 'application/zip' })
})

test('the type of bytes that cannot be read is that of their head', async () => {
  const peek = () => Promise.reject(new Error('EIO'))
  expect(await sniffType({ peek }, received(zip([['a', long]])))).toMatchObject({ mime: 'application/zip' })
  expect(await sniffType({ peek }, received(Buffer.alloc(10_000)))).toBeNull()
})

test('no timer remains after a sniff', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await sniff(Buffer.alloc(10_000, 'text'))
  expect(vi.getTimerCount()).toBe(0)
})

test('a read that hangs does not block the upload', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const peeked = Promise.withResolvers<void>()
  const peek = () => {
    peeked.resolve()
    return new Promise<Blob>(() => undefined)
  }
  const sniffed = sniffType({ peek }, received(zip([['a', long]])))
  await peeked.promise
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await sniffed).toMatchObject({ mime: 'application/zip' })
})

test('X1, X4 where the type is required, bytes that cannot be read in time are refused', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const isRequired = { isRequired: true }
  const fail = () => Promise.reject(new Error('EIO'))
  const hang = () => new Promise<Blob>(() => undefined)
  const file = received(zip([['a', long]]))
  await expect(sniffType({ peek: fail }, file, isRequired)).rejects.toMatchObject({ code: 'overloaded' })
  const sniffed = expect(sniffType({ peek: hang }, file, isRequired)).rejects.toMatchObject({
    code: 'overloaded',
  })
  await vi.advanceTimersByTimeAsync(10_000)
  await sniffed
  const jpeg = received(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), long]))
  expect(await sniffType({ peek: fail }, jpeg, isRequired)).toMatchObject({ mime: 'image/jpeg' })
  const text = new Blob(['text '.repeat(2_000)])
  const plain = received(Buffer.alloc(10_000, 'text '))
  expect(await sniffType({ peek: async () => text }, plain, isRequired)).toBeNull()
})

test('U7: a bitmap, and a picture that is also a script, have their types', async () => {
  const bitmap = Buffer.from('424d1e000000000000001a0000000c000000010001000100180000ff00000000', 'hex')
  expect(await sniff(bitmap)).toMatchObject({ mime: 'image/bmp' })
  expect(await sniff(Buffer.from('GIF89a/*\x01\0*/=1;alert(1)'))).toMatchObject({ mime: 'image/gif' })
})

const known = (bytes: Uint8Array) => fileTypeFromBuffer(bytes).catch(() => 'broken')
const ours = (bytes: Uint8Array) =>
  new SignatureParser(bytes.byteLength).fromBuffer(bytes).catch(() => 'broken')

/** Signatures at the start, after an offset, with a mask, in other encodings, and in containers, with what their formats have behind them. */
const signatures = [
  ...['\xff\xd8\xff\xe0', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'GIF89a\x01\0\x01\0', 'II*\0', 'MM\0*'],
  ...[
    `BM${'\0'.repeat(12)}\x28\0\0\0`,
    'RIFF\x20\0\0\0WEBPVP8 ',
    'RIFF\xff\xff\xff\xffWAVEfmt ',
    '8BPS\0\x01',
  ],
  ...['\0\0\0\x20ftypavif', '\0\0\0\x18ftypheic', '\0\0\0\x20ftypisom', '\x1aE\xdf\xa3', '\0\0\0\x01mdat'],
  ...[
    'OggS\0\x02',
    'fLaC\0\0\0\x22',
    'ID3\x04\0\0\0\0\0\0',
    'FORM\0\0\0\x20AIFF',
    'MThd\0\0\0\x06',
    'MP+\x17',
  ],
  ...[
    'PK\x03\x04',
    '\x1f\x8b\x08',
    'BZh91AY&SY',
    '7z\xbc\xaf\x27\x1c',
    'Rar!\x1a\x07',
    '\xfd7zXZ\0',
    '%PDF-1.7',
  ],
  ...['%!PS-Adobe-3.0 EPSF-3.0', '<?xml version="1.0"?>', '\xef\xbb\xbf<?xml version="1.0"?>', '{\\rtf1'],
  ...[
    '\xff\xfe<\0?\0x\0m\0l\0',
    '\xfe\xff\0<\0?\0x\0m\0l',
    'BEGIN:VCARD\r\n',
    '-----BEGIN PGP MESSAGE-----\n',
  ],
  ...[
    '\0asm',
    '\x7fELF',
    'MZ\x90\0\x03\0',
    '\xca\xfe\xba\xbe',
    '\0\x01\0\0\0',
    'OTTO\0',
    'wOF2\0\x01\0\0\0\0\0\x20',
  ],
  ...[
    '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
    'SQLite format 3\0',
    '\xff\xfb\x90\0',
    '\xff\xf1\x50\x80',
    'wvpk\x20\0\0\0\x10\x04',
  ],
  ...[
    `${'\0'.repeat(128)}DICM\x02\0`,
    'G'.padEnd(188, '\0').repeat(3),
    'MAC \x96\x0f',
    '!<arch>\n',
    'WEBVTT\n',
    'AC1015\0',
  ],
  ...[
    `a${'\0'.repeat(99)}0000644\0`.padEnd(257, '\0').concat('ustar\0'),
    `${'x'.repeat(36)}acsp`.replace(/^x{4}/, '\0\0\x02\0'),
  ],
].map((text) => Buffer.from(text, 'latin1'))

test('U7 the fast sniffer equals the library for each signature, followed by any bytes', async () => {
  for (const signature of signatures) {
    for (const rest of [Buffer.alloc(0), Buffer.alloc(600), Buffer.alloc(600, 'text'), randomBytes(5_000)]) {
      const bytes = Buffer.concat([signature, rest])
      expect(await ours(bytes), bytes.toString('latin1', 0, 40)).toEqual(await known(bytes))
    }
  }
})

test('U7 the fast sniffer equals the library for all first bytes', async () => {
  for (let first = 0; first < 256; first += 1) {
    for (const second of [0, 0x31, 0xff, first]) {
      const bytes = Buffer.concat([Buffer.from([first, second]), randomBytes(60)])
      expect(await ours(bytes), bytes.toString('hex')).toEqual(await known(bytes))
    }
  }
})

test('U7 every file in which the library detects a type passes the test for signatures', async () => {
  const hasSignature = await createSignatureTest()
  const firstBytes = Array.from({ length: 256 }, (_, first) => Buffer.from([first, first]))
  for (const signature of [...signatures, ...firstBytes]) {
    for (const rest of [Buffer.alloc(0), Buffer.alloc(600), Buffer.alloc(600, 'CWS'), randomBytes(5_000)]) {
      const bytes = Buffer.concat([signature, rest])
      const found = await known(bytes)
      if (found !== undefined) expect(hasSignature(bytes), JSON.stringify(found)).toBe(true)
    }
  }
  const image = Buffer.alloc(40_000)
  image.write('CD001', 32_769, 'latin1')
  expect(await known(image)).toMatchObject({ ext: 'iso' })
  expect(hasSignature(image)).toBe(true)
})

test('most texts have no signature, so that the library does not read them', async () => {
  const hasSignature = await createSignatureTest()
  for (const text of ['a text like any other', '{"a": 1}', '0123456789', 'id,name,size\r\n1,a,2\r\n'])
    expect(hasSignature(Buffer.alloc(5_000, text)), text).toBe(false)
})

test('nearly all checks of the library are decided by the first byte', async () => {
  const { check, checkString } = FileTypeParser.prototype
  let checks = 0
  FileTypeParser.prototype.check = function (...given) {
    checks += 1
    return check.apply(this, given)
  }
  try {
    const text = Buffer.alloc(5_000, 'a text like any other')
    await fileTypeFromBuffer(text)
    const all = checks
    await new SignatureParser(text.byteLength).fromBuffer(text)
    expect(all).toBeGreaterThan(100)
    expect(checks - all).toBeLessThan(all / 10)
  } finally {
    Object.assign(FileTypeParser.prototype, { check, checkString })
  }
})
