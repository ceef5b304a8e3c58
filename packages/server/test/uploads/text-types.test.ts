import { mayHaveRemovableMetadata } from '@mediabucket/strip-metadata'
import { FileTypeParser } from 'file-type'
import { expect, test } from 'vitest'
import { newItemId } from '../../src/core/ids.ts'
import { decodeText, storedType } from '../../src/core/stored-type.ts'
import { headLength } from '../../src/storage/blobs/blobs.ts'
import { SignatureParser, sniffType } from '../../src/uploads/file-type.ts'

const fileOf = (bytes: Uint8Array) => ({
  ...{ id: newItemId(), handle: 'test', sha256: new Uint8Array(32) },
  ...{ size: bytes.byteLength, head: bytes.subarray(0, headLength) },
})

const sniff = async (bytes: Uint8Array) => {
  const whole = new Blob([Uint8Array.from(bytes)])
  return await sniffType({ peek: async () => whole }, fileOf(bytes))
}

/** Texts that begin with a signature, or have one at its offset. */
const texts = [
  ...[
    'BM is short for benchmark',
    'BMW, Audi, Mercedes',
    'BM;1;2',
    'MZ, Moritz',
    'MZ is a town',
    'MP+ and more',
  ],
  ...['%! is odd', '%!TEX program = xelatex', '%!test assert(1)', '%!PS is a mark', '%!PS-Adobe is a name'],
  ...['GIF is pronounced with a soft g', 'GIF,JPG,PNG', 'GIF89a is a version', 'GIF87a'],
  ...['BZh! said the bee', 'BZh9 is a level', 'BZhang wrote this', 'ID3 tags are old', 'ID3,artist,title'],
  ...[
    'ID3v2.4 has frames',
    'CWS is a company',
    'FWS;1;2',
    'FWS and CWS',
    'FLIF is a format',
    'FLIF41 is a head',
  ],
  ...[
    '8BPS psd',
    '8BPS is the mark of Photoshop',
    'MPCK and so on',
    'MPCKSH is a head',
    'FORM 1040',
    'FORMAT: A4',
  ],
  ...[
    'FORM,name,date',
    'FORM    AIFF',
    'caffeine is a stimulant',
    'icns is a format of Apple',
    'icns,ico,png',
  ],
  ...[
    'OggS is a page',
    'OggSpot',
    'MThd is a chunk',
    'wOFF is a font',
    'wOFFOTTO',
    'wOF2OTTO',
    'wOF2 is newer',
  ],
  ...['DSD is a method', 'DSD recordings', 'LZIP is a program', 'LZIPPED', 'fLaC is lossless', 'fLaCon'],
  ...[
    'wvpk is WavPack',
    'wvpk,1,2',
    '%PDF is a format',
    '%PDF-1.4 is a version',
    '%PDF-1.x',
    'MAC address',
    'MAC OS X',
  ],
  ...[
    'SQLi is an attack',
    'SQLite format 3 is great',
    'SQLite,MySQL',
    'Cr24 is chromium',
    'MSCF is a cabinet',
  ],
  ...[
    'ISc(a) = b',
    '!BDN is a mark',
    'PAR1 is Parquet',
    'PARE the apples',
    'PAREnt,child',
    'ttcf is a collection',
  ],
  ...[
    'regfile',
    'regf is a hive',
    '$FL2 is SPSS',
    '$FL3@(#) is SPSS',
    '#!AMR is a codec',
    '{\\rtf is rich text',
  ],
  ...[
    'FLV is a format',
    'IMPM is a module',
    'IMPM,a,b',
    'a -lh5- b',
    'x,-lh0-,y,z',
    'is-lz4-good?',
    'ITSF is a help file',
  ],
  ...['.RMF is RealMedia', 'DRACO malfoy', 'DRACO,dormiens', '<?xml is a declaration', '<?xml-stylesheet ?>'],
  ...['solid advice', 'solid state of the art\nand more', 'AC1015 is a drawing', 'AC1032,AutoCAD', 'AC 1000'],
  ...[
    '070707 is a date',
    '070707,1,2',
    'BLENDER is a program',
    'BLENDER 4.2',
    '!<arch> is an archive',
    '!<arch>;',
  ],
  ...[
    'WEBVTT is a format',
    'WEBVTT files\nhave cues',
    'The free lunch is over.',
    'id, free,used',
    'one mdat atom',
  ],
  ...[
    'the moov atom',
    'far wide open',
    'is, wide,low',
    'any ftyp box',
    'are ftypes known',
    'gimp xcf is a format',
  ],
  ...[
    'REGEDIT4 is a version',
    'REGEDIT4\r\nis the first line',
    'RIFF is WEBP',
    'RIFF is AVI',
    'RIFF is WAVE',
  ],
  ...['RIFF is QLCM', 'FRM8 and 123DSD ', 'BEGIN:VCARD is a line', 'BEGIN:VCALENDAR is a line', 'BEGIN:'],
  ...['FUJIFILMCCD-RAW is a camera', 'Extended Module: the second', 'Creative Voice File is old'],
  ...[
    '-----BEGIN PGP MESSAGE----- is a line',
    'a text **ACE**',
    'Kaydara FBX Binary',
    'Obj, a name',
    'glTF is a format',
  ],
  ...[
    'G'.padEnd(188, 'o').repeat(2),
    'xxxxG'.padEnd(196, 'o').concat('G'),
    'a'.repeat(36).concat('acsp profile'),
  ],
  ...['a'.repeat(44).concat('SCRM is Scream Tracker'), 'a'.repeat(60).concat('BOOKMOBI is a book')],
  ...[
    'a'.repeat(128).concat('DICM is medicine'),
    'a'.repeat(257).concat('ustar is a format'),
    'II* and MM*',
    'IIRO',
  ],
  ...[
    'PK is short for Peter',
    'Rar! is a noise',
    '7z is a program',
    'OTTO is a name',
    'NES is a console',
    'xz,gz',
  ],
  'a text\nof many lines\n'.repeat(1_600).slice(0, 32_769).concat('CD001 is a disc'),
]

const encodings: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['ASCII', (text) => Buffer.from(text)],
  ['UTF-8', (text) => Buffer.from(`${text} – été\n`)],
  ['UTF-8 with its mark', (text) => Buffer.from(`\ufeff${text}\n`)],
  ['Latin-1', (text) => Buffer.from(`${text} été £\n`, 'latin1')],
  ['UTF-16', (text) => Buffer.from(`\ufeff${text}\n`, 'utf16le')],
  ['a terminal', (text) => Buffer.from(`${text} \x1b[1mbold\x1b[0m\n`)],
]

const types = [
  ['txt', 'text/plain'],
  ['csv', 'text/csv'],
  ['md', 'text/markdown'],
] as const

test.each(encodings)('U7 a text that begins with a signature stays text, in %s', async (_, encode) => {
  expect(texts.length).toBeGreaterThan(100)
  for (const text of texts) {
    const bytes = encode(text)
    const [sniffed, start] = [await sniff(bytes), fileOf(bytes)]
    expect(sniffed, text).toBeNull()
    // Otherwise a bucket that removes metadata may refuse it.
    const isText = (head: Uint8Array) => decodeText(head) !== null
    expect(mayHaveRemovableMetadata(start.head, start.size, 'text/plain', isText), text).toBe(false)
    for (const [extension, type] of types)
      for (const declared of [type, null]) {
        const stored = storedType({ sniffed, declared, filename: `a.${extension}`, start })
        expect([stored.contentType.split(';')[0], stored.extension], text).toEqual([type, extension])
      }
  }
})

test('U7 letters at the start of Latin-1 texts are no signature either', async () => {
  for (const text of [
    'Ça va',
    'Çq',
    '`êtres`',
    'II¼',
    'ÅÐÓÆ',
    'ÿ\nA',
    'ÿû is odd',
    'ÿñ',
    'Êþº¾',
    'BPGû',
    'þíúÎ',
    'í«îÛ',
  ])
    expect(await sniff(Buffer.from(text, 'latin1')), text).toBeNull()
})

/** Records the comparisons that the library makes, and fails them. */
class Recorder extends FileTypeParser {
  readonly signatures: { readonly signature: Buffer; readonly offset: number }[] = []

  override check(signature: readonly number[], { offset = 0 } = {}): boolean {
    this.signatures.push({ signature: Buffer.from(signature), offset })
    return false
  }
}

test('U7 no signature of the library that consists of letters is enough', async () => {
  const recorder = new Recorder()
  await recorder.fromBuffer(Buffer.alloc(1_024, 'C'))
  const letters = recorder.signatures.filter(({ signature }) =>
    /^[\x20-\x7e]{2,}$/.test(signature.toString('latin1')),
  )
  expect(letters.length).toBeGreaterThan(80)
  for (const { signature, offset } of letters) {
    const bytes = Buffer.alloc(2_000, 'some words and ')
    signature.copy(bytes, offset)
    expect(await sniff(bytes), signature.toString()).toBeNull()
    // A file of another format, which is no text.
    bytes[1_900] = 0
    const found = await new SignatureParser(bytes.byteLength).fromBuffer(bytes)
    expect(found, `${offset} ${signature}`).toBeUndefined()
  }
})

test('U7 an archive has its type whatever the name of its first file is', async () => {
  for (const name of [
    'BMW.txt',
    'GIFs/a.gif',
    'FORM.txt',
    'MZ',
    'ID3.txt',
    'The free/a',
    'solid state.txt',
    '8BPS',
  ]) {
    const header = Buffer.alloc(512)
    header.write(name)
    header.write('0000644\0', 100)
    header.write('ustar\x0000', 257)
    const sum = header.reduce((total, byte) => total + byte, 8 * 0x20)
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    expect(await sniff(Buffer.concat([header, Buffer.alloc(1_024)])), name).toMatchObject({ ext: 'tar' })
  }
})

test('U7 texts of formats that have a signature have their types', async () => {
  const expected: readonly (readonly [string, string])[] = [
    ['<?xml version="1.0"?><a/>', 'xml'],
    ['%PDF-1.4\n1 0 obj\n', 'pdf'],
    ['%PDF-1.7\n%âãÏÓ\n', 'pdf'],
    ['%!PS-Adobe-3.0 EPSF-3.0\n', 'eps'],
    ['%!PS-Adobe-3.0\n', 'ps'],
    ['%!PS\n/a 1 def', 'ps'],
    ['{\\rtf1\\ansi a}', 'rtf'],
    ['BEGIN:VCARD\r\nVERSION:3.0\r\n', 'vcf'],
    ['BEGIN:VCALENDAR\r\nVERSION:2.0\r\n', 'ics'],
    ['WEBVTT\n\n00:01.000 --> 00:02.000\nHello', 'vtt'],
    ['WEBVTT - a title\n\n00:01.000 --> 00:02.000\nHello', 'vtt'],
    ['solid cube\n  facet normal 0 0 1\n', 'stl'],
    ['-----BEGIN PGP MESSAGE-----\n\nabc\n', 'pgp'],
    ['REGEDIT4\r\n\r\n[HKEY_CURRENT_USER\\a]\r\n', 'reg'],
    [`!<arch>\n${'a.txt/'.padEnd(58)}\`\ntext`, 'ar'],
  ]
  for (const [text, ext] of expected) {
    expect(await sniff(Buffer.from(text)), text).toMatchObject({ ext })
    expect(await sniff(Buffer.from(`\ufeff${text}`)), text).toMatchObject({ ext })
  }
  const registry = Buffer.from(
    '\ufeffWindows Registry Editor Version 5.00\r\n\r\n[HKEY_CURRENT_USER\\a]\r\n',
    'utf16le',
  )
  expect(await sniff(registry)).toMatchObject({ ext: 'reg' })
})

test.each([
  [
    'the byte E9, declared as Latin-1',
    Buffer.from('caf\xe9', 'latin1'),
    'text/plain; charset=ISO-8859-1',
    'iso-8859-1',
  ],
  ['the byte E9, undeclared', Buffer.from('caf\xe9', 'latin1'), 'text/plain', 'unknown-8bit'],
  [
    'the byte E9, declared as UTF-8',
    Buffer.from('caf\xe9', 'latin1'),
    'text/plain; charset=utf-8',
    'unknown-8bit',
  ],
  [
    'the byte E9, of an unknown charset',
    Buffer.from('caf\xe9', 'latin1'),
    'text/plain; charset=utf-7',
    'unknown-8bit',
  ],
  ['UTF-8, declared as Latin-1', Buffer.from('café'), 'text/plain; charset="iso-8859-1"', null],
  [
    'ASCII in an encoding with escapes',
    Buffer.from('\x1b$B%+\x1b(B'),
    'text/plain; charset=iso-2022-jp',
    'iso-2022-jp',
  ],
  ['UTF-8', Buffer.from('café'), 'text/plain', null],
  ['UTF-8 that is cut inside a character', Buffer.from(`a${'€'.repeat(headLength)}`), 'text/plain', null],
  ['bytes that are no text', Buffer.from('caf\xe9\0', 'latin1'), 'text/plain', null],
  ['UTF-16 with its mark', Buffer.from('\ufeffa', 'utf16le'), 'text/plain', 'utf-16'],
  ['UTF-16 without a mark', Buffer.from('a', 'utf16le'), 'text/plain; charset=utf-16le', 'utf-16le'],
])('U13 the charset of %s', (_, bytes, declared, charset) => {
  const { contentType } = storedType({
    sniffed: null,
    declared: declared,
    filename: 'a.txt',
    start: fileOf(bytes),
  })
  expect(contentType).toBe(charset === null ? 'text/plain' : `text/plain; charset=${charset}`)
  const json = { sniffed: null, declared: 'application/json; charset=iso-8859-1', filename: 'a.json' }
  expect(storedType({ ...json, start: fileOf(bytes) }).contentType).toBe('application/json')
})
