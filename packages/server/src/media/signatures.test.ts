import { randomBytes } from 'node:crypto'
import { FileTypeParser, fileTypeFromBuffer } from 'file-type'
import { expect, test } from 'vitest'
import { createSignatureTest, SignatureParser } from './signatures.ts'

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
