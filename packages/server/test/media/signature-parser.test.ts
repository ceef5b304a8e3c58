import { randomBytes } from 'node:crypto'
import { FileTypeParser, fileTypeFromBuffer } from 'file-type'
import { expect, test } from 'vitest'
import { createSignatureTest } from '../../src/media/has-signature.ts'
import { SignatureParser } from '../../src/media/sniff-type.ts'

const known = (bytes: Uint8Array) => fileTypeFromBuffer(bytes).catch(() => 'broken')
const ours = (bytes: Uint8Array) => new SignatureParser().fromBuffer(bytes).catch(() => 'broken')

/** Signatures at the start, after an offset, with a mask, in other encodings, and in containers. */
const signatures = [
  ...[
    '\xff\xd8\xff\xe0',
    '\x89PNG\r\n\x1a\n\0\0\0\rIHDR',
    'GIF89a',
    'BM',
    'II*\0',
    'MM\0*',
    'RIFF....WEBPVP8 ',
  ],
  ...[
    '\0\0\0\x20ftypavif',
    '\0\0\0\x18ftypheic',
    '\0\0\0\x20ftypisom',
    '\x1aE\xdf\xa3',
    'OggS',
    'fLaC',
    'ID3\x04',
  ],
  ...[
    'PK\x03\x04',
    '\x1f\x8b\x08',
    'BZh9',
    '7z\xbc\xaf\x27\x1c',
    'Rar!\x1a\x07',
    '\xfd7zXZ\0',
    '%PDF-1.7',
    '%!PS',
  ],
  ...[
    '<?xml version="1.0"?>',
    '\xef\xbb\xbf<?xml ',
    '\xff\xfe<\0?\0x\0m\0l\0',
    '\xfe\xff\0<\0?\0x\0m\0l',
    '{\\rtf',
  ],
  ...[
    '\0asm',
    '\x7fELF',
    'MZ',
    '\xca\xfe\xba\xbe',
    'wOF2',
    '\0\x01\0\0\0',
    'OTTO\0',
    '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
  ],
  ...[
    'SQLite format 3\0',
    'BEGIN:VCARD',
    '-----BEGIN PGP MESSAGE-----',
    'solid ',
    '\xff\xfb\x90\0',
    '\xff\xf1\x50\x80',
  ],
  ...[
    `${'\0'.repeat(257)}ustar\0`,
    `${'x'.repeat(4)}ftypqt  `,
    `${'\0'.repeat(128)}DICM`,
    'G'.padEnd(188, '\0').repeat(3),
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
    await new SignatureParser().fromBuffer(text)
    expect(all).toBeGreaterThan(100)
    expect(checks - all).toBeLessThan(all / 10)
  } finally {
    Object.assign(FileTypeParser.prototype, { check, checkString })
  }
})
